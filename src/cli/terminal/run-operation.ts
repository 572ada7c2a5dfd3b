import { AppError } from '../../domain/errors.ts';
import {
  type Given,
  type LocalOperation,
  NO_MANIFEST,
  type Operation,
  type OperationDeps,
  perform,
} from '../../operator/operation.ts';
import { createLogger } from '../../runtime/log.ts';
import type { Static, TSchema } from '../../runtime/type.ts';
import { cliActor } from './operator.ts';
import { configuredNetworks } from './select-network.ts';
import type { Terminal } from './terminal.ts';
import { type CommandDatabase, now, withDatabase } from './with-database.ts';

type Options = { by?: string | undefined; mayCreate?: boolean };

/**
 * Runs an operation where the command is to run: here, on the database of the service, or on the server that was named. What is wrong
 * with the input alone is said before either is asked.
 */
export async function runOperation<Input extends TSchema, Wanted, Outcome>(
  terminal: Terminal,
  operation: LocalOperation<Input, Wanted, Outcome> | Operation<Input, Wanted, Outcome>,
  given: Given<Static<Input>>,
  { by, mayCreate = false }: Options = {},
): Promise<Outcome> {
  const wanted = operation.read(given, now());
  const actor = cliActor(terminal, by);
  const server = terminal.server();
  if (server === null || !('path' in operation)) {
    const work = (database: CommandDatabase) => perform(operation, depsOf(terminal, database), actor, wanted);
    return withDatabase(terminal, work, { mayCreate, mayMigrate: false });
  }
  if (by !== undefined) {
    throw new AppError(
      'USAGE',
      '--by has no effect with --server, because the server records the name of the admin key: leave it out',
    );
  }
  return (await import('./ask-server.ts')).askServer(terminal, server, operation, given);
}

function depsOf(terminal: Terminal, database: CommandDatabase): OperationDeps {
  const { db, random, config } = database;
  return {
    ...{ db, now, random, config, consoleUrl: config.consoleUrl, note: terminal.note },
    // Who asks for something here pays for the requests. The answer says why a node gave none.
    log: createLogger({ level: 'error', destination: terminal.stderr }),
    addressGuard: NO_MANIFEST,
    networks: configuredNetworks(config),
    nodes: async () => {
      const [{ usingNodes }, { describeForPayer }] = await Promise.all([
        import('./with-nodes.ts'),
        import('./payer-words.ts'),
      ]);
      return { withNodes: (network, work) => usingNodes(terminal, database, network, work), describeForPayer };
    },
  };
}
