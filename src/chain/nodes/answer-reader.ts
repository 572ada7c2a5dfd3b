import { createJsonReader, type JsonReader, type JsonShape, NotJson } from './json-reader.ts';

/** An object of three characters takes about 64 bytes, so this much text holds 11 MB at most. */
const UNCOUNTED_BYTES = 512 * 1024;
/** Of what may be held: values take about 64 bytes each, and the text three times its length while it is parsed. */
const [MARK_BYTES, TEXT_TIMES] = [64, 3];
const MAX_DEPTH = 64;

/**
 * The marks of bytes: 1 may begin a value, 2 a value with others inside, 3 may end such a one. Bytes inside texts count too, which
 * only makes the check stricter.
 */
const MARKS = new Uint8Array(256);
MARKS[0x2c] = 1;
MARKS[0x7b] = 2;
MARKS[0x5b] = 2;
MARKS[0x7d] = 3;
MARKS[0x5d] = 3;

/**
 * Reads a JSON answer in bounded memory. An answer of ordinary size and shape is parsed at once, seven times as fast as in pieces.
 * Any other answer is read in pieces as it comes, and only the parts that `shape` keeps are held.
 */
export function createAnswerReader(shape: JsonShape, maxHeldBytes: number): JsonReader {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let counted = 0;
  let marks = 0;
  let depth = 0;
  let deepest = 0;
  let pieces: JsonReader | null = null;
  const count = (chunk: Uint8Array) => {
    for (let at = 0; at < chunk.length; at += 1) {
      const mark = MARKS[chunk[at] ?? 0];
      if (mark === 0) continue;
      if (mark === 3) depth -= 1;
      else marks += 1;
      if (mark === 2) depth += 1;
      if (depth > deepest) deepest = depth;
    }
  };
  return {
    push: (chunk) => {
      if (pieces !== null) return pieces.push(chunk);
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= UNCOUNTED_BYTES) return;
      for (const each of chunks.slice(counted)) count(each);
      counted = chunks.length;
      const isPlain = bytes * TEXT_TIMES <= maxHeldBytes && marks * MARK_BYTES <= maxHeldBytes;
      if (isPlain && deepest <= MAX_DEPTH) return;
      pieces = createJsonReader(shape, maxHeldBytes);
      for (const earlier of chunks.splice(0)) pieces.push(earlier);
    },
    end: () => {
      if (pieces !== null) return pieces.end();
      try {
        return JSON.parse(Buffer.concat(chunks).toString('utf8'));
      } catch {
        throw new NotJson('it cannot be parsed');
      }
    },
  };
}
