import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';

/** Lines that are only ever added; a position names a line. */
export interface ChainLog {
  /** Adds lines and returns the position of the first one. They are with the operating system when this returns. */
  append(lines: readonly string[]): number;
  read(position: number): string;
  /** Visits every line from a position to the end. */
  replay(from: number, visit: (line: string, position: number) => void): void;
  end(): number;
  close(): void;
}

const NEWLINE = 0x0a;
const CHUNK_BYTES = 256 * 1024;

/** The longest line is a block full of transactions: 2,000 of about 2 kB. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Opens a log file. A last line without an end, which a process killed while writing leaves behind, is cut off.
 * There is no fsync: a killed process loses nothing, a power cut may lose the last blocks of a network that is worth nothing.
 */
export function openFileLog(path: string): ChainLog {
  const file = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  let end = endOfLastLine(file, fstatSync(file).size);
  ftruncateSync(file, end);
  return {
    append(lines) {
      const start = end;
      const bytes = Buffer.from(`${lines.join('\n')}\n`);
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(file, bytes, written, bytes.length - written, start + written);
      }
      end = start + bytes.length;
      return start;
    },
    read(position) {
      let found: string | null = null;
      scan(file, { from: position, end }, (line) => {
        found = line;
        return false;
      });
      if (found === null) throw new Error(`devnet log ${path} has no line at ${position}: the directory is damaged`);
      return found;
    },
    replay(from, visit) {
      scan(file, { from, end }, (line, position) => {
        visit(line, position);
        return true;
      });
    },
    end: () => end,
    close: () => closeSync(file),
  };
}

/** The same in memory, for a devnet without a directory: about 400 bytes a block. */
export function createMemoryLog(): ChainLog {
  const kept: string[] = [];
  return {
    append(lines) {
      kept.push(...lines);
      return kept.length - lines.length;
    },
    read(position) {
      const line = kept[position];
      if (line === undefined) throw new Error(`devnet log has no line ${position}`);
      return line;
    },
    replay(from, visit) {
      for (const [index, line] of kept.entries()) if (index >= from) visit(line, index);
    },
    end: () => kept.length,
    close: () => undefined,
  };
}

/** Reads lines from a position on until `visit` returns false. */
function scan(
  file: number,
  { from, end }: { from: number; end: number },
  visit: (line: string, position: number) => boolean,
): void {
  let [lineStart, offset, carried] = [from, from, Buffer.alloc(0)];
  // A block without transactions takes about 400 bytes, so one is read with little waste, and a run of them in big steps.
  let chunkBytes = 1024;
  while (offset < end) {
    const chunk = Buffer.alloc(Math.min(chunkBytes, end - offset));
    const count = readSync(file, chunk, 0, chunk.length, offset);
    if (count === 0) return;
    offset += count;
    chunkBytes = Math.min(chunkBytes * 4, CHUNK_BYTES);
    carried = Buffer.concat([carried, chunk.subarray(0, count)]);
    for (let at = carried.indexOf(NEWLINE); at >= 0; at = carried.indexOf(NEWLINE)) {
      if (!visit(carried.toString('utf8', 0, at), lineStart)) return;
      lineStart += at + 1;
      carried = carried.subarray(at + 1);
    }
    if (carried.length > MAX_LINE_BYTES)
      throw new Error(`devnet log has a line over ${MAX_LINE_BYTES} bytes at ${lineStart}`);
  }
}

function endOfLastLine(file: number, size: number): number {
  for (let high = size; high > 0; ) {
    const low = Math.max(0, high - CHUNK_BYTES);
    const chunk = Buffer.alloc(high - low);
    readSync(file, chunk, 0, chunk.length, low);
    const at = chunk.lastIndexOf(NEWLINE);
    if (at >= 0) return low + at + 1;
    high = low;
  }
  return 0;
}
