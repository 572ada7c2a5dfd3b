import { hostname, userInfo } from 'node:os';
import { Command, CommanderError } from '@commander-js/extra-typings';
import { AppError, invalidArgument, usageError } from '../../core/domain/errors.ts';
import { whenParentDies } from '../../core/runtime/processes.ts';
import { type Actor, commandActor } from '../../faces/operator/actor.ts';
import { asWritten, joinParts, type Printed, secretMessage, writeText } from '../../faces/operator/command-words.ts';
import { detectSecret, holdsKeyOrId, printableJson } from '../../faces/operator/input/problems.ts';
import { type DescribedError, describeError, EXIT, type ExitCode } from './describe-error.ts';

/** The result of a command: `data` is for --json, and the output for people. */
export type Result = Omit<Printed, 'refusal'> & { data: object };

/** The parts of the process that a command uses. */
export type Surroundings = {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
};

/** A command's environment and output. If a command writes to `stdout` itself, it has no other result. */
export type Terminal = Surroundings & {
  readonly json: boolean;
  /**
   * Prints a result. `null` means that the command has already written its result to standard output. With --json, exactly one JSON object
   * is printed, even if the command fails.
   */
  print(result: Result | null): void;
  /** The exit code for the printed result. */
  exitCode(): ExitCode;
  /** The server that runs the command; `null` means locally. */
  server(): string | null;
  useServer(url: string): void;
  /** Prints everything except results to standard error. */
  note(text: string): void;
};

export function createTerminal({ env, stdin, stdout, stderr }: Surroundings, options: { json: boolean }): Terminal {
  const note = (text: string) => {
    if (text !== '') stderr.write(`${text}\n`);
  };
  let exitCode: ExitCode = EXIT.ok;
  let server: string | null = null;
  return {
    ...{ env, stdin, stdout, stderr },
    json: options.json,
    note,
    exitCode: () => exitCode,
    server: () => server,
    useServer: (url) => {
      server = url;
    },
    print(result) {
      if (result === null) return;
      const { data, text, next = null, hasFailed, isUnknown } = result;
      exitCode = isUnknown === true ? EXIT.notFound : hasFailed === true ? EXIT.failed : EXIT.ok;
      const shown = options.json ? printableJson(JSON.stringify(data, asWritten, 2)) : joinParts(text);
      if (shown !== '') stdout.write(`${shown}\n`);
      const hints = [next].flat().filter((hint) => hint !== null && hint !== false);
      if (!options.json) note(hints.map(writeText).join('\n'));
    },
  };
}

/** Prints an error: with --json as `{"error": …}` on standard output, otherwise as text on standard error. */
function printError(terminal: Terminal, error: DescribedError): void {
  const { code, message, problems } = error;
  if (error.stack !== undefined) terminal.note(error.stack);
  if (terminal.json) {
    const errors = problems.length === 0 ? {} : { errors: problems };
    terminal.print({ data: { error: { code, message, ...errors } }, text: '' });
    return;
  }
  terminal.note([`error: ${message}`, ...problems.map((problem) => `  ${problem.message}`)].join('\n'));
}

export type Print = (result: Promise<Result | null>) => Promise<void>;

/** `--allow-ip a,b --allow-ip c` gives three entries. */
export function collect(text: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...text.split(',')];
}

/** `place` is where the secret was given: an argument or an option. */
function secretProblem(place: string, kind: string): { subject: string; message: string } {
  return { subject: place, message: `${place}: ${secretMessage(kind)}` };
}

/** The database schema sets this limit. */
const MAX_LENGTH = 200;

/**
 * Returns the operator's name for the record: `--by`, or else the operating system's user; under sudo, the user who ran it. Records are
 * permanent, so a name that looks like a secret is refused.
 */
export function readOperator(option: string | undefined, env: NodeJS.ProcessEnv): string {
  if (option === undefined) return (env['SUDO_USER'] || systemUser(env)).slice(0, MAX_LENGTH);
  const name = option.trim();
  const secret = detectSecret(name);
  if (secret !== null) throw new AppError('INVALID_ARGUMENT', secretProblem('--by', secret).message);
  const length = [...name].length;
  if (length >= 1 && length <= MAX_LENGTH && !/\p{Cc}/u.test(name)) return name;
  const problem =
    length === 0 ? 'is empty' : length > MAX_LENGTH ? `has ${length} characters` : 'contains a line break';
  throw invalidArgument`--by ${problem}: use a name of 1 to ${MAX_LENGTH} characters on one line`;
}

/** A process in a container may run as a user id without a name. */
function systemUser(env: NodeJS.ProcessEnv): string {
  try {
    return userInfo().username;
  } catch {
    return env['USER'] || env['LOGNAME'] || `user ${process.getuid?.() ?? 'unknown'}`;
  }
}

/** The actor for a command that runs on this machine. */
export function cliActor({ env }: { env: NodeJS.ProcessEnv }, by?: string): Actor {
  return commandActor(readOperator(by, env), hostname().slice(0, MAX_LENGTH) || null);
}

/** Aborts on the first signal, or when the npm process that started this one dies. A second signal ends the process at once. */
export function stopSignal(exitCode: number): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCode);
      controller.abort();
    });
  }
  whenParentDies(() => controller.abort());
  return controller.signal;
}

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
    const described = describeError(error instanceof CommanderError ? asUsageError(error) : error);
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
function asUsageError(error: CommanderError): AppError {
  if (error.code === 'commander.help') return usageError`no command was given: choose one from the help`;
  // Commander repeats unknown input, which may be a secret. It appends its own list of choices, which is excluded because a dozen names in
  // a row look like a seed phrase.
  const secret = detectSecret(error.message.replace(/ Allowed choices are .*$/m, ''));
  if (secret !== null) {
    const { message } = secretProblem('arguments', secret);
    return new AppError('USAGE', holdsKeyOrId(error.message) ? `${message} ${ID_WITHOUT_COMMAND}` : message);
  }
  const [message = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const hint = hints.length === 0 ? '' : ` ${hints.join(' ')}`;
  return usageError`${`${message}${hint}`.replace(/\.$/, '')}; for usage, run the command with --help`;
}

/** This helps with `quittance transfers <id>`, where the command before the id was forgotten. */
const ID_WITHOUT_COMMAND =
  'If it is a transaction id, put a command before it: "quittance explain <id>" or "quittance transfers show <id>".';
