import { asWritten, secretMessage } from '../../operator/command-words.ts';
import { printableJson } from '../../operator/input/problems.ts';
import { type DescribedError, EXIT, type ExitCode } from './describe-error.ts';

/**
 * The result of a command: `data` for --json, `text` for people, `next` (a hint, not part of the result) for people only.
 * `exitCode` says that the finding is bad, though the command itself went well.
 */
export type Result = { data: object; text: string; next?: string; exitCode?: ExitCode };

/** The parts of the process that a command uses. */
export type Surroundings = {
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: NodeJS.WritableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
};

/** Where a command runs, and how it speaks. If a command writes to `stdout` itself, that is its whole result. */
export type Terminal = Surroundings & {
  readonly json: boolean;
  /** Results only: with --json exactly one JSON object, also when the command fails. */
  print(result: Result): void;
  /** The exit code of the result that was printed. */
  exitCode(): ExitCode;
  /** The server that runs the command; `null`: it runs here. */
  server(): string | null;
  useServer(url: string): void;
  /** Everything else, on standard error. */
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
    print({ data, text, next, exitCode: found = EXIT.ok }) {
      exitCode = found;
      const shown = options.json ? printableJson(JSON.stringify(data, asWritten, 2)) : text;
      if (shown !== '') stdout.write(`${shown}\n`);
      if (!options.json && next !== undefined) note(next);
    },
  };
}

/** Prints an error: with --json as `{"error": …}` on standard output, else as text on standard error. */
export function printError(terminal: Terminal, error: DescribedError): void {
  const { code, message, problems } = error;
  if (error.stack !== undefined) terminal.note(error.stack);
  if (terminal.json) {
    const errors = problems.length === 0 ? {} : { errors: problems };
    terminal.print({ data: { error: { code, message, ...errors } }, text: '' });
    return;
  }
  terminal.note([`error: ${message}`, ...problems.map((problem) => `  ${problem.message}`)].join('\n'));
}

export type Print = (result: Promise<Result>) => Promise<void>;

export const PROJECT_OPTION = ['--project <prj_…>', 'project (default: the only one)'] as const;

/** `--allow-ip a,b --allow-ip c` is three entries. */
export function collect(text: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...text.split(',')];
}

/** `place` is where the secret stands: an argument or an option. */
export function secretProblem(place: string, kind: string): { subject: string; message: string } {
  return { subject: place, message: `${place}: ${secretMessage(kind)}` };
}
