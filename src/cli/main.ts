import type { Command } from '@commander-js/extra-typings';
import { readVersion } from '../runtime/version.ts';
import { addCommands } from './commands.ts';
import type { ExitCode } from './terminal/describe-error.ts';
import { JSON_OPTION, programOf, runProgram } from './terminal/run-program.ts';
import { chooseServer, SERVER_OPTION } from './terminal/server-option.ts';
import type { Surroundings, Terminal } from './terminal/terminal.ts';

/**
 * The `quittance` command. Returns the exit code; the process ends by itself once nothing is open any more.
 * Each command's module is loaded when it runs, so that --help and a typing mistake answer at once.
 */
export function main(args: readonly string[], surroundings: Surroundings = process): Promise<ExitCode> {
  return runProgram(args, surroundings, (terminal) => createProgram(terminal, args));
}

async function createProgram(terminal: Terminal, args: readonly string[]): Promise<Command> {
  const program = programOf('quittance', terminal);
  program
    .description('Self-hosted, non-custodial invoicing for USDT on TRON.')
    .version(readVersion(), '-V, --version')
    .option(...JSON_OPTION)
    .option(...SERVER_OPTION)
    .hook('preAction', (program, command) => chooseServer(terminal, program, command))
    .addHelpText('after', HELP);
  await addCommands(program, terminal, (group) => args.includes(group));
  return program;
}

const HELP = `
Environment:
  Commands read the same variables as the service: DATABASE_URL, or the embedded
  database in QUITTANCE_DATA_DIR (.quittance). docs/configuration.md lists them all.

Exit codes:
  0  done
  1  failed
  2  wrong arguments or configuration
  3  not found: no such project, key or database
  4  conflict: it is there already, or belongs to another project
  5  unavailable: the database does not answer, or a directory or port is in use

Output:
  Results go to standard output, everything else to standard error. With --json the
  result is one object; an error is {"error": {"code", "message", "errors"?}} and comes
  on standard output too: the exit code tells which of the two it is.`;
