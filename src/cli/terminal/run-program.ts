import { Command, CommanderError } from '@commander-js/extra-typings';
import { AppError } from '../../core/domain/errors.ts';
import { detectSecret, holdsKeyOrId } from '../../faces/operator/input/problems.ts';
import { describeError, EXIT, type ExitCode } from './describe-error.ts';
import { createTerminal, printError, type Surroundings, secretProblem, type Terminal } from './terminal.ts';

/** Runs one command of a program and returns its exit code. The process exits on its own once nothing is open any more. */
export async function runProgram(
  args: readonly string[],
  surroundings: Surroundings,
  createProgram: (terminal: Terminal) => Command | Promise<Command>,
): Promise<ExitCode> {
  // `quittance project list | head` stops reading early, which isn't an error.
  surroundings.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.ok);
    throw error;
  });
  const terminal = createTerminal(surroundings, { json: isJsonAsked(args) });
  try {
    const program = await createProgram(terminal);
    await program.parseAsync(args, { from: 'user' });
    return terminal.exitCode();
  } catch (error) {
    if (error instanceof CommanderError && wasAsked(error)) return EXIT.ok;
    const described = describeError(error instanceof CommanderError ? usageError(error) : error);
    printError(terminal, described);
    return described.exitCode;
  }
}

export const JSON_OPTION = ['--json', 'print one JSON object on standard output, even for an error'] as const;

/** The settings that our programs share: output is written through the terminal, and usage errors are thrown. */
export function programOf(name: string, terminal: Terminal): Command {
  return new Command(name)
    .helpOption('-h, --help', 'show this help')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: () => undefined,
    })
    .exitOverride();
}

/**
 * Returns whether `--json` was given. The program needs this before it parses the arguments, because mistakes in the arguments are reported
 * in the same form.
 */
function isJsonAsked(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end === -1 ? args : args.slice(0, end)).includes('--json');
}

/** Whether the user asked for this help text. Help that is shown because of a mistake has a different exit code. */
function wasAsked({ code, exitCode }: CommanderError): boolean {
  const isShown = code === 'commander.helpDisplayed' || code === 'commander.version';
  return isShown || (code === 'commander.help' && exitCode === 0);
}

/** Commander shows a group's help if the group was called without a command, but that is a mistake. */
function usageError(error: CommanderError): AppError {
  if (error.code === 'commander.help') return new AppError('USAGE', 'no command was given: choose one from the help');
  // Commander repeats unknown input, which may be a secret. It appends its own list of choices, which is excluded because a dozen names in
  // a row look like a seed phrase.
  const secret = detectSecret(error.message.replace(/ Allowed choices are .*$/m, ''));
  if (secret !== null) {
    const { message } = secretProblem('arguments', secret);
    return new AppError('USAGE', holdsKeyOrId(error.message) ? `${message} ${ID_WITHOUT_COMMAND}` : message);
  }
  const [message = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const hint = hints.length === 0 ? '' : ` ${hints.join(' ')}`;
  return new AppError('USAGE', `${`${message}${hint}`.replace(/\.$/, '')}; for usage, run the command with --help`);
}

/** This helps with `quittance transfers <id>`, where the command before the id was forgotten. */
const ID_WITHOUT_COMMAND =
  'If it is a transaction id, put a command before it: "quittance explain <id>" or "quittance transfers show <id>".';
