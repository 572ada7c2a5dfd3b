import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { clip } from '../../operator/input/clip.ts';
import {
  EXPORT_COLUMNS,
  type ExportRow,
  exportTransfers,
  readSelection,
} from '../../operator/transfers/export-transfers.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { csvLine } from './csv.ts';

type Output = { format?: string | undefined; output?: string | undefined };
type ExportInput = Parameters<typeof readSelection>[0] & Output & { projectId: string | undefined };
type Format = 'csv' | 'json';

/**
 * Writes the ledger of a project to a file, or to standard output as fast as it takes it. `null`: standard output holds the
 * export and nothing else.
 */
export async function printExport(terminal: Terminal, { projectId, ...input }: ExportInput): Promise<Result | null> {
  const { stdout } = terminal;
  const { output } = input;
  const format = readFormat(input, terminal.json);
  const selection = readSelection(input);
  return withDatabase(terminal, async (deps) => {
    const batches = await exportTransfers(deps, cliActor(terminal), { projectId, ...selection });
    const count = { rows: 0 };
    const chunks = write(format, batches, count);
    if (output === undefined) {
      for await (const chunk of chunks) if (!stdout.write(chunk)) await once(stdout, 'drain');
      return null;
    }
    const file = await replaceFile(output, chunks);
    const what = count.rows === 1 ? '1 transfer' : `${count.rows} transfers`;
    return { data: { file, format, transfers: count.rows }, text: `wrote ${what} to ${file}` };
  });
}

/** `--json` asks for the JSON export, and beside `--output` for the report of the command too, which may be all that is wanted. */
function readFormat({ format, output }: Output, isJsonAsked: boolean): Format {
  if (format === undefined) return isJsonAsked ? 'json' : 'csv';
  if (format !== 'csv' && format !== 'json') {
    throw new AppError('INVALID_ARGUMENT', `--format is ${clip(format)}: choose csv or json`);
  }
  if (format === 'csv' && isJsonAsked && output === undefined) {
    throw new AppError(
      'INVALID_ARGUMENT',
      '--json promises JSON on standard output, and --format csv is none: leave one out, or write to a file with --output',
    );
  }
  return format;
}

/** Text in chunks of one batch. `count` rises with the rows. */
async function* write(
  format: Format,
  batches: AsyncIterable<ExportRow[]>,
  count: { rows: number },
): AsyncGenerator<string> {
  yield format === 'csv' ? csvLine(EXPORT_COLUMNS.map(([name]) => name)) : '{"data":[';
  for await (const rows of batches) {
    const isFirst = count.rows === 0;
    count.rows += rows.length;
    if (format === 'csv')
      yield rows.map((row) => csvLine(EXPORT_COLUMNS.map(([, cell]) => cell(row) ?? null))).join('');
    else yield `${isFirst ? '\n' : ',\n'}${rows.map(toJson).join(',\n')}`;
  }
  if (format === 'json') yield '\n]}\n';
}

function toJson(row: ExportRow): string {
  return JSON.stringify(Object.fromEntries(EXPORT_COLUMNS.map(([name, cell]) => [name, cell(row) ?? null])));
}

/**
 * Writes a file whole or not at all: beside it under another name, then renamed. Only for its owner, for it tells who paid
 * what. Returns the path that was written.
 */
async function replaceFile(path: string, chunks: AsyncIterable<string>): Promise<string> {
  const target = await findTarget(path);
  const draft = `${target}.${randomBytes(6).toString('hex')}.part`;
  const handle = await open(draft, 'wx', 0o600).catch((error: unknown) => {
    throw unwritable(path, error);
  });
  try {
    try {
      await writeFile(handle, chunks);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, target);
    return target;
  } catch (error) {
    await rm(draft, { force: true });
    throw isFileError(error) ? unwritable(path, error) : error;
  }
}

/** Renaming would put a file in the place of a link, a device or a pipe. */
async function findTarget(path: string): Promise<string> {
  const found = await stat(path).catch((error: unknown) => {
    if (isFileError(error) && error.code === 'ENOENT') return null;
    throw unwritable(path, error);
  });
  if (found === null) return path;
  if (found.isFile()) return realpath(path);
  throw new AppError(
    'INVALID_ARGUMENT',
    `--output ${clip(path)} is no file: name a file, or leave --output out and redirect standard output`,
  );
}

/** Errors of the operating system name the call that failed; those of the database come as our own. */
function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

function unwritable(path: string, error: unknown): AppError {
  const code = isFileError(error) ? error.code : String(error);
  return new AppError('INVALID_ARGUMENT', `--output ${clip(path)} cannot be written (${code}); nothing was changed`, {
    cause: error,
  });
}
