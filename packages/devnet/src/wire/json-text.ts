/** A part of a response that JSON.stringify would write differently, or that is too long for a single string. */
export class Verbatim {
  readonly #value: () => unknown;
  readonly pieces: () => Iterable<string>;

  /** `value` returns the value that JSON.stringify gets instead, and `pieces` returns the text. */
  constructor(value: () => unknown, pieces: () => Iterable<string>) {
    this.#value = value;
    this.pieces = pieces;
  }

  toJSON(): unknown {
    return this.#value();
  }

  /** Returns the whole text, so that it can be concatenated with other text. */
  toString(): string {
    return String(this.#value());
  }
}

/** Long texts are generated in pieces of about this size. */
const PIECE_CHARACTERS = 64 * 1024;

/** The text that JSON.stringify writes for U+0000, the placeholder for a verbatim part. No node's response contains it. */
const MARK = '\\u0000';

/** Returns an integer that is written with all its digits, as java-tron writes an int64. If a number is exact, returns the number. */
export function exactInteger(value: bigint): number | Verbatim {
  const number = Number(value);
  return Number.isSafeInteger(number)
    ? number
    : new Verbatim(
        () => number,
        () => [value.toString()],
      );
}

/** Returns the hex of a repeated byte. */
export function longHex(byte: string, count: number): Verbatim {
  return new Verbatim(
    () => byte.repeat(count),
    function* () {
      yield '"';
      yield* repeat(byte, count);
      yield '"';
    },
  );
}

/** Returns a list that contains the same element `count` times. */
export function longList(element: object, count: number): Verbatim {
  return new Verbatim(
    () => new Array(count).fill(element),
    function* () {
      const text = JSON.stringify(element);
      yield '[';
      yield* repeat(`${text},`, count - 1);
      yield `${text}]`;
    },
  );
}

/**
 * Returns a response's text piece by piece. If no part of the text is long, the result is a single array. Like java-tron's responses, it
 * ends with a newline.
 */
export function jsonPieces(answer: unknown): Iterable<string> {
  const verbatim: Verbatim[] = [];
  const text = JSON.stringify(answer, function (this: Record<string, unknown>, key: string, value: unknown) {
    const held = this[key];
    if (!(held instanceof Verbatim)) return value;
    verbatim.push(held);
    return '\u0000';
  });
  const parts = `${text}\n`.split(`"${MARK}"`);
  return verbatim.length === 0 ? parts : woven(parts, verbatim);
}

function* woven([first = '', ...rest]: readonly string[], verbatim: readonly Verbatim[]): Generator<string> {
  yield first;
  for (const [index, between] of rest.entries()) {
    yield* verbatim[index]?.pieces() ?? [];
    yield between;
  }
}

/** Yields a text repeated `count` times, in pieces. */
export function* repeat(text: string, count: number): Generator<string> {
  const perPiece = Math.max(1, Math.floor(PIECE_CHARACTERS / text.length));
  const piece = text.repeat(Math.min(perPiece, Math.max(0, count)));
  let left = count;
  for (; left >= perPiece; left -= perPiece) yield piece;
  if (left > 0) yield text.repeat(left);
}
