import type { NodePool } from '../chain/nodes/node-pool.ts';
import type { ReadDeps } from '../chain/verify/read-block.ts';
import type { DeadlineClock } from '../domain/clocks.ts';
import type { GeneralAnswer } from '../domain/lookup/lookup.ts';
import type { Text } from '../domain/message.ts';
import type { Network } from '../domain/network.ts';
import type { UnixMs } from '../domain/time.ts';
import type { AddressGuard } from '../payments/manifest/address-guard.ts';
import type { Recording } from '../payments/watching.ts';
import type { Logger } from '../runtime/log.ts';
import type { KeySettings } from '../runtime/open-key-ring.ts';
import type { Static, TSchema } from '../runtime/type.ts';
import type { Database } from '../store/db/database.ts';
import type { AccountHex } from '../tron/address.ts';
import type { ActionName } from './actions.ts';
import type { Actor } from './actor.ts';
import { authorize } from './authorize.ts';
import type { Printed } from './command-words.ts';

/** For what asks the nodes of a network. */
export type ReadSolidDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  agreement: number;
  /** How long to go on asking, for one part of the range, nodes that refuse, are wrong, or disagree. */
  patienceMs: number;
};

/** For what also records. */
export type NodeDeps = ReadSolidDeps & Recording;

/** Everything that a use case may need that can be run over the wire. Each takes what it names. */
export type OperationDeps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  config: KeySettings & {
    sandbox: boolean;
    webhooks: { localTargets: boolean; retentionDays: number };
    networks: Partial<Record<Network, { usdt: AccountHex }>>;
  };
  /** The console's own origin, which a process that serves it knows when it listens; `null`: none is configured. */
  consoleUrl: string | null | (() => string);
  /** Hears what is no part of the answer, such as a key file that others could read. */
  note(text: string): void;
  log: Logger;
  /** Those whose nodes are asked here. */
  networks: readonly Network[];
  /** Loads what asks nodes, which most do without. */
  nodes(): Promise<NodeAccess>;
  /** Which addresses are signed. */
  addressGuard: Vouching;
  /** Where payers reach the service; of a sandbox it is known while it runs. */
  publicUrl(): string | Promise<string>;
  /** A uniform integer in 0 … n−1. */
  randomBelow(n: number): number;
  /** By which invoices are made and expire. */
  deadlineClock?: DeadlineClock | (() => Promise<DeadlineClock>);
};

/** What the address manifest in force says. */
export type Vouching = Pick<AddressGuard, 'vouchesFor' | 'isGuarded'>;

/** For commands: what they add does not wait, and no list of theirs says what is signed. */
export const NO_MANIFEST: Vouching = { vouchesFor: () => false, isGuarded: () => false };

export type NodeAccess = {
  /** Error: `SANDBOX_NOT_RUNNING`. */
  withNodes<Output>(network: Network, work: (nodes: NodeDeps) => Promise<Output>): Promise<Output>;
  /** The words of the payer's page. */
  describeForPayer(answer: GeneralAnswer): string;
};

/** As it is given on the wire and by options: a member that may be left out may also be `undefined`. */
export type Given<Input> = {
  [Name in keyof Input]: object extends Pick<Input, Name> ? Input[Name] | undefined : Input[Name];
};

/**
 * A use case that runs here only, by its name in `ACTIONS`; `LOCAL_ACTIONS` says why. `read` finds what is wrong without the database. `view`
 * makes what programs see out of an outcome, which may hold more for people.
 */
export type LocalOperation<
  Input extends TSchema = TSchema,
  Wanted = unknown,
  Outcome = unknown,
  Deps = OperationDeps,
> = {
  action: ActionName;
  input: Input;
  read(given: Given<Static<Input>>, now: UnixMs): Wanted;
  run(deps: Deps, actor: Actor, wanted: Wanted): Promise<Outcome>;
  view(outcome: Outcome): object;
  /** The command that runs it, what its help says, and what it prints for people. Its options are declared with the
   * members of the input. `isSecretTyped`: a secret stands on the command line. */
  command?: string;
  does?: Text;
  print?(outcome: Outcome, typed: { isSecretTyped: boolean }): Printed;
  /** `--by`, which names the person for the record, and the member before whose option it stands, if not last. */
  by?: { help: string; before?: string };
  /** What a person at the terminal is asked where a member is left out; `after`: only if it answered that of another member. */
  asks?: readonly { member: string; question: string; after?: string }[];
  /** What the command says where it was given no option, and does nothing without one. */
  nothing?: Text;
  /** The command makes the database where there is none yet. */
  mayCreate?: boolean;
  /** The outcome is `ExportedRows`, which the command writes as `format` and `output` of the input say. */
  isExport?: boolean;
};

/**
 * A use case that can be run here or on a server. From it follow its route, its entry in the OpenAPI document, and how a command runs it on
 * a server. `path` stands below `/admin/v1`; what it names, as `:keyId`, are members of the input.
 */
export type Operation<
  Input extends TSchema = TSchema,
  Wanted = unknown,
  Outcome = unknown,
  Deps = OperationDeps,
> = LocalOperation<Input, Wanted, Outcome, Deps> & {
  summary: string;
  method: 'GET' | 'POST' | 'PATCH';
  path: string;
  output: TSchema;
};

type Declared<Of extends { view: unknown }> = Omit<Of, 'view'> & Partial<Pick<Of, 'view'>>;

/** Declares an operation. Its view is what its use case returns, or the `view` therein, unless it says otherwise. */
export function operation<Input extends TSchema, Wanted, Outcome extends object, Deps = OperationDeps>(
  declared: Declared<Operation<Input, Wanted, Outcome, Deps>>,
): Operation<Input, Wanted, Outcome, Deps> {
  return { view: viewOf, ...declared };
}

/** The same of one that has no route. */
export function localOperation<Input extends TSchema, Wanted, Outcome extends object, Deps = OperationDeps>(
  declared: Declared<LocalOperation<Input, Wanted, Outcome, Deps>>,
): LocalOperation<Input, Wanted, Outcome, Deps> {
  return { view: viewOf, ...declared };
}

function viewOf(outcome: object): object {
  return 'view' in outcome ? (outcome.view as object) : outcome;
}

/** Runs an operation for an actor who may. Errors: `FORBIDDEN`, and its own. */
export async function perform<Wanted, Outcome>(
  { action, run }: Pick<LocalOperation<TSchema, Wanted, Outcome>, 'action' | 'run'>,
  deps: OperationDeps,
  actor: Actor,
  wanted: Wanted,
): Promise<Outcome> {
  authorize(actor, action);
  return run(deps, actor, wanted);
}
