import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import type { Sql } from '../../store/database.ts';
import type { ExportFilter } from '../../store/ledger-export.ts';
import type { Project } from '../../store/projects.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import type { ProjectOption } from '../option-parts.ts';
import { selectProject } from '../select-project.ts';
import type { Result, Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { csvLine } from './csv.ts';
import { readKinds, readPeriod } from './options.ts';
import { EXPORT_COLUMNS, type ExportRow, incomingRows, outgoingRows } from './rows.ts';

export type ExportOptions = ProjectOption & {
  format?: string;
  direction: string;
  kind: string;
  from?: string;
  to?: string;
  output?: string;
};

type Format = 'csv' | 'json';
type Direction = 'in' | 'out' | 'both';

/**
 * Writes the ledger of a project to a file, or to standard output as fast as it takes it. No more than one batch of rows is in
 * memory, whatever the size. `null`: standard output holds the export and nothing else.
 */
export async function exportTransfers(terminal: Terminal, options: ExportOptions): Promise<Result | null> {
  const { stdout } = terminal;
  const { output } = options;
  const format = readFormat(options, terminal.json);
  const direction = readDirection(options.direction);
  const filter = { kinds: readKinds(options.kind), ...readPeriod(options) };
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const count = { rows: 0 };
    const chunks = write(format, exportedRows(db, project, direction, filter), count);
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
function readFormat({ format, output }: ExportOptions, isJsonAsked: boolean): Format {
  if (format === undefined) return isJsonAsked ? 'json' : 'csv';
  if (format !== 'csv' && format !== 'json') {
    throw new CliError('INVALID_ARGUMENT', `--format is ${clip(format)}: choose csv or json`);
  }
  if (format === 'csv' && isJsonAsked && output === undefined) {
    throw new CliError(
      'INVALID_ARGUMENT',
      '--json promises JSON on standard output, and --format csv is none: leave one out, or write to a file with --output',
    );
  }
  return format;
}

function readDirection(text: string): Direction {
  if (text === 'in' || text === 'out' || text === 'both') return text;
  throw new CliError('INVALID_ARGUMENT', `--direction is ${clip(text)}: choose in, out or both`);
}

async function* exportedRows(
  db: Sql,
  project: Project,
  direction: Direction,
  filter: ExportFilter,
): AsyncGenerator<ExportRow[]> {
  if (direction !== 'out') yield* incomingRows(db, project, filter);
  if (direction !== 'in') yield* outgoingRows(db, project, filter);
}

/** Text in chunks of one batch. `count` rises with the rows. */
async function* write(
  format: Format,
  batches: AsyncIterable<ExportRow[]>,
  count: { rows: number },
): AsyncGenerator<string> {
  yield format === 'csv' ? csvLine(EXPORT_COLUMNS) : '{"data":[';
  for await (const rows of batches) {
    const isFirst = count.rows === 0;
    count.rows += rows.length;
    if (format === 'csv') yield rows.map((row) => csvLine(EXPORT_COLUMNS.map((column) => row[column]))).join('');
    else yield `${isFirst ? '\n' : ',\n'}${rows.map((row) => JSON.stringify(row)).join(',\n')}`;
  }
  if (format === 'json') yield '\n]}\n';
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
  throw new CliError(
    'INVALID_ARGUMENT',
    `--output ${clip(path)} is no file: name a file, or leave --output out and redirect standard output`,
  );
}

/** Errors of the operating system name the call that failed; those of the database come as our own. */
function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

function unwritable(path: string, error: unknown): CliError {
  const code = isFileError(error) ? error.code : String(error);
  return new CliError('INVALID_ARGUMENT', `--output ${clip(path)} cannot be written (${code}); nothing was changed`, {
    cause: error,
  });
}
