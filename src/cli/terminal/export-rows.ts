import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { AppError, invalidArgument } from '../../core/domain/errors.ts';
import { type ExportedRows, writeRows } from '../../faces/operator/export/write-rows.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import type { Result, Terminal } from './terminal.ts';

/** Where to write rows, and whether as CSV or JSON. */
type Output = { format?: string | undefined; output?: string | undefined };
type Format = 'csv' | 'json';

/**
 * Writes any number of rows to a file, or to standard output as fast as it accepts them. Returns `null` if the export was written to
 * standard output, where nothing else may be printed in that case.
 */
export async function exportRows<Row>(
  { stdout }: Terminal,
  { format, output }: { format: Format; output: string | undefined },
  rows: ExportedRows<Row>,
): Promise<Result | null> {
  const count = { rows: 0 };
  const chunks = writeRows(format, rows, count);
  if (output === undefined) {
    for await (const chunk of chunks) if (!stdout.write(chunk)) await once(stdout, 'drain');
    return null;
  }
  const file = await replaceFile(output, chunks);
  const what = count.rows === 1 ? `1 ${rows.name}` : `${count.rows} ${rows.plural}`;
  return { data: { file, format, [rows.plural]: count.rows }, text: `wrote ${what} to ${file}` };
}

/**
 * `--json` asks for a JSON export. With `--output`, it also asks for the command's report as JSON, so `--format csv --json` is allowed: a
 * CSV file with a JSON report.
 */
export function readFormat({ format, output }: Output, isJsonAsked: boolean): Format {
  if (format === undefined) return isJsonAsked ? 'json' : 'csv';
  if (format !== 'csv' && format !== 'json') throw invalidArgument`--format is ${clip(format)}: choose csv or json`;
  if (format === 'csv' && isJsonAsked && output === undefined)
    throw invalidArgument`--json and --format csv cannot be combined on standard output: leave one out, or write to a file with --output`;
  return format;
}

/**
 * Writes a file completely or not at all: writes under another name first, then renames. Only the owner can read the file, because it shows
 * who paid what. Returns the path.
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

/** Renaming would replace a link, a device or a pipe with a file. */
async function findTarget(path: string): Promise<string> {
  const found = await stat(path).catch((error: unknown) => {
    if (isFileError(error) && error.code === 'ENOENT') return null;
    throw unwritable(path, error);
  });
  if (found === null) return path;
  if (found.isFile()) return realpath(path);
  throw invalidArgument`--output ${clip(path)} is not a file: use a file, or leave --output out and redirect standard output`;
}

/** Operating system errors name the failed call. Database errors have already been converted to our own. */
function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

function unwritable(path: string, error: unknown): AppError {
  const code = isFileError(error) ? error.code : String(error);
  return new AppError('INVALID_ARGUMENT', `--output ${clip(path)} cannot be written (${code}); nothing was changed`, {
    cause: error,
  });
}
