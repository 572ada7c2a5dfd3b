import { randomInt } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { AppError, invalidArgument, usageError } from '../../core/domain/errors.ts';
import { createLogger } from '../../core/runtime/log.ts';
import type { Static, TSchema } from '../../core/runtime/type.ts';
import { clip, detectSecret, quoteWhole } from '../../faces/operator/input/problems.ts';
import { type AddressEntry, readList } from '../../faces/operator/input/readers.ts';
import {
  type Given,
  type LocalOperation,
  NO_MANIFEST,
  type Operation,
  type OperationDeps,
  perform,
} from '../../faces/operator/operation.ts';
import { declaredOption, membersOf } from '../../faces/operator/option.ts';
import { configuredNetworks, publicUrlOf } from './select-network.ts';
import { cliActor, type Terminal } from './terminal.ts';
import { type CommandDatabase, now, withDatabase } from './with-database.ts';

type Options = { by?: string | undefined; mayCreate?: boolean; asOwner?: boolean };

/**
 * Runs an operation where the command should run: locally on the service's database, or on the named server. Errors in the input are
 * reported before the database or the server is contacted. `use` gets the outcome while the database is still open.
 */
export async function runOperation<Input extends TSchema, Wanted, Outcome, Used = Outcome>(
  terminal: Terminal,
  operation: LocalOperation<Input, Wanted, Outcome> | Operation<Input, Wanted, Outcome>,
  given: Given<Static<Input>>,
  { by, ...opening }: Options = {},
  use: (outcome: Outcome) => Promise<Used> = async (outcome) => outcome as never,
): Promise<Used> {
  const wanted = operation.read(given, now());
  const actor = cliActor(terminal, by);
  const server = terminal.server();
  if (server === null || !('path' in operation)) {
    const work = async (database: CommandDatabase) =>
      use(await perform(operation, depsOf(terminal, database), actor, wanted));
    return withDatabase(terminal, work, opening);
  }
  if (by !== undefined)
    throw usageError`--by has no effect with --server, because the server records the admin key's name: leave it out`;
  return use(await (await import('./ask-server.ts')).askServer(terminal, server, operation, given));
}

function depsOf(terminal: Terminal, database: CommandDatabase): OperationDeps {
  const { db, random, config } = database;
  return {
    ...{ db, now, random, config, consoleUrl: config.consoleUrl, note: terminal.note },
    // Warnings about nodes are left out, because the answer itself says why a node failed.
    log: createLogger({ level: 'error', destination: terminal.stderr }),
    addressGuard: NO_MANIFEST,
    networks: configuredNetworks(config),
    ...{ publicUrl: () => publicUrlOf(config), randomBelow: (n) => randomInt(n) },
    deadlineClock: async () => (await import('../../faces/operator/subjects/invoices.ts')).readDeadlineClock(db),
    nodes: async () => (await import('./with-nodes.ts')).nodeAccess(terminal, database),
  };
}

/** Reads a secret from standard input if it was given as `-`, and the files that options name. */
export async function readParts(
  terminal: Terminal,
  input: TSchema,
  typed: Record<string, unknown>,
  listed: string | undefined,
) {
  let isSecretTyped = false;
  const given = { ...typed };
  for (const [member, schema] of Object.entries(membersOf(input))) {
    const { isSecret = false, isRemovable = false, file, entries } = declaredOption(schema) ?? {};
    const value = given[member];
    if (isRemovable && value === false) given[member] = null;
    if (entries !== undefined) given[member] = await readAddressList(value as string[], listed, terminal.stdin);
    if (typeof value !== 'string') continue;
    if (isSecret && value !== '-') isSecretTyped = true;
    if (isSecret) given[member] = await readSecret(value, terminal);
    if (file !== undefined) given[member] = await readFileOption(value, file);
  }
  return { given, isSecretTyped };
}

/** The maximum number of entries in one command. Adding this many takes one transaction of about a second. */
const MAX_ENTRIES = 10_000;
/** This many addresses with labels are much smaller than this. */
const MAX_BYTES = 10_000_000;

/**
 * Collects addresses from arguments, from standard input (`-`), and from a file. These contain CSV, or one address on each line; empty
 * lines and everything after a `#` are ignored.
 */
export async function readAddressList(args: readonly string[], file: string | undefined, stdin: NodeJS.ReadableStream) {
  const entries: AddressEntry[] = [];
  const typed = args.filter((arg) => arg !== '-');
  typed.forEach((text, index) => {
    entries.push({ text: text.trim(), place: `argument ${index + 1}` });
  });
  if (args.includes('-')) entries.push(...readList(await readText(stdin, 'standard input'), 'standard input'));
  if (file !== undefined) entries.push(...readList(await readAddressFile(file), file));
  if (entries.length === 0) {
    const sources = [...(args.includes('-') ? ['standard input'] : []), ...(file === undefined ? [] : [named(file)])];
    throw new AppError(
      'INVALID_ARGUMENT',
      sources.length > 0
        ? `${sources.join(' and ')}: no address found; write one address per line`
        : 'no address was given: pass an address as an argument, or use --file or "-" (standard input)',
    );
  }
  if (entries.length > MAX_ENTRIES)
    throw invalidArgument`${entries.length} addresses were given, but one command accepts at most ${MAX_ENTRIES}: split the list, for example with "split -l ${MAX_ENTRIES}", and run the command for each part`;
  return entries;
}

async function readAddressFile(file: string): Promise<string> {
  try {
    return await readText(createReadStream(file), file);
  } catch (error) {
    if (error instanceof AppError) throw error;
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new AppError('INVALID_ARGUMENT', `--file ${named(file)} cannot be read (${code})`, { cause: error });
  }
}

/** Someone who confuses options may give a secret instead of a file. */
function named(file: string): string {
  return detectSecret(file) === null ? quoteWhole(file) : clip(file);
}

/** Reads UTF-8, or the UTF-16 that some spreadsheets save. Drops the byte order mark. */
async function readText(stream: NodeJS.ReadableStream, source: string): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stream) {
    const bytes = Buffer.from(part);
    size += bytes.length;
    if (size > MAX_BYTES)
      throw invalidArgument`${source} is larger than ${MAX_BYTES} bytes, so it cannot be a list of addresses`;
    parts.push(bytes);
  }
  const bytes = Buffer.concat(parts);
  const isUtf16 = bytes[0] === 0xff && bytes[1] === 0xfe;
  return new TextDecoder(isUtf16 ? 'utf-16le' : 'utf-8').decode(bytes);
}

/** Reads a file for an option as base64, at most one byte more than allowed. `unread` is the reason why the file can't be read. */
async function readFileOption(path: string, { of, mostBytes }: { of: string; mostBytes: number }) {
  const content = await readStart(path, of, mostBytes).catch(({ code }: NodeJS.ErrnoException) =>
    code === 'ENOENT'
      ? 'does not exist: use the path of an existing file'
      : `cannot be read (${code}): give your user permission to read it`,
  );
  return typeof content === 'string'
    ? { file: path, content: '', unread: content }
    : { file: path, content: content.toString('base64') };
}

async function readStart(path: string, of: string, mostBytes: number): Promise<Buffer | string> {
  // With O_NONBLOCK, opening a pipe doesn't wait for its other end.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    if (!(await handle.stat()).isFile()) return `is not a file: use the path to ${of}`;
    const buffer = Buffer.alloc(mostBytes + 1);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** This is longer than any secret, and than any URL that contains one. */
const MAX_SECRET_INPUT = 4096;

/** Returns the given secret; `-` asks a person for it, or reads it from standard input. Throws `INVALID_ARGUMENT`. */
async function readSecret(option: string | undefined, terminal: Terminal): Promise<string | undefined> {
  if (option !== '-') return option?.trim();
  const { askSecret, hasPerson } = await import('./ask-person.ts');
  if (hasPerson(terminal)) return (await askSecret(terminal, 'Secret (not shown): ')) ?? '';
  let text = '';
  for await (const chunk of terminal.stdin) {
    text += String(chunk);
    if (text.length > MAX_SECRET_INPUT)
      throw invalidArgument`standard input contains more than one secret: enter only one, on one line`;
  }
  return text.trim();
}
