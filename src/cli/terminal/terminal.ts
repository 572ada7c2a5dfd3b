import { asWritten } from '../../operator/command-words.ts';
import { printable, printableJson } from '../../operator/input/printable.ts';
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

/** Aligned lines of name and value; a value that is `null` is left out. */
export function formatFields(fields: readonly (readonly [name: string, value: string | null])[]): string {
  const shown = fields.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length));
  return shown.map(([name, value]) => `${name.padEnd(width)}  ${printable(value ?? '')}`.trimEnd()).join('\n');
}

/** Columns under their names, or nothing at all for an empty list. */
export function formatTable(names: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const lines = [names, ...rows.map((row) => row.map(printable))];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
