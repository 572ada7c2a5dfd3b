import { readFile } from 'node:fs/promises';
import { text as readText } from 'node:stream/consumers';
import { CliError } from './cli-error.ts';

/** A text that should be an address, and where it stands: `argument 2`, `line 14 of addresses.txt`. */
export type AddressEntry = { text: string; place: string };

/** One command adds so many at most, in one transaction. */
const MAX_ENTRIES = 1000;

/**
 * Collects addresses from arguments, from standard input (`-`), and from a file: one a line; empty lines and what follows
 * a `#` are skipped.
 */
export async function readAddresses(
  args: readonly string[],
  file: string | undefined,
  stdin: NodeJS.ReadableStream,
): Promise<AddressEntry[]> {
  const entries: AddressEntry[] = [];
  const typed = args.filter((arg) => arg !== '-');
  typed.forEach((text, index) => {
    entries.push({ text: text.trim(), place: `argument ${index + 1}` });
  });
  if (args.includes('-')) entries.push(...linesOf(await readText(stdin), 'standard input'));
  if (file !== undefined) entries.push(...linesOf(await readAddressFile(file), file));
  if (entries.length === 0) {
    throw new CliError('INVALID_ARGUMENT', 'no address was given: write it as an argument, or use --file or "-"');
  }
  if (entries.length > MAX_ENTRIES) {
    throw new CliError(
      'INVALID_ARGUMENT',
      `${entries.length} addresses were given: add at most ${MAX_ENTRIES} at once`,
    );
  }
  return entries;
}

async function readAddressFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new CliError('INVALID_ARGUMENT', `--file ${JSON.stringify(file)} cannot be read (${code})`, { cause: error });
  }
}

function linesOf(content: string, source: string): AddressEntry[] {
  return content
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line, index) => ({ text: line.replace(/#.*/, '').trim(), place: `line ${index + 1} of ${source}` }))
    .filter(({ text }) => text !== '');
}
