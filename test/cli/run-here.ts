import { Readable } from 'node:stream';
import { Command, CommanderError } from 'commander';
import { describeError } from '../../src/cli/cli-error.ts';
import { addCommands } from '../../src/cli/commands.ts';
import { printError, type Terminal } from '../../src/cli/terminal.ts';
import type { CliOptions, CliOutput } from './run-cli.ts';

/** Runs a command in this process, with a terminal of its own: for tests of many commands, of which a process would cost a second each. */
export async function runHere(args: readonly string[], options: CliOptions = {}): Promise<CliOutput> {
  const isJson = args.includes('--json');
  let [stdout, stderr, code] = ['', '', 0];
  const terminal: Terminal = {
    json: isJson,
    env: options.env ?? {},
    stdin: Readable.from([options.stdin ?? '']),
    note: (text) => {
      stderr += `${text}\n`;
    },
    exitCode: () => 0,
    print: ({ data, text, next, exitCode }) => {
      stdout += `${isJson ? JSON.stringify(data) : text}\n`;
      if (!isJson && next !== undefined) stderr += `${next}\n`;
      code = exitCode ?? 0;
    },
  };
  const program = new Command('quittance').option('--json').exitOverride();
  program.configureOutput({ writeErr: () => undefined });
  addCommands(program, terminal);
  try {
    await program.parseAsync([...args], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return { code: 2, stdout, stderr: error.message, json: null };
    const described = describeError(error);
    printError(terminal, described);
    code = described.exitCode;
  }
  return { code, stdout, stderr, json: isJson ? JSON.parse(stdout) : undefined };
}
