import { parseAmount } from './money.ts';
import { toIso, type UnixMs, unixMs } from './time.ts';
import { parseUrl } from './url.ts';

/**
 * Where the price of one USDT comes from. `url` returns JSON that contains the number at `path` and its time at `timePath` (JSON pointers,
 * RFC 6901, such as `/tether/cny`). Without `timePath`, Quittance uses the time of its request. `min` and `max` are decimal numbers.
 */
export type RateSource = {
  url: string;
  path: string;
  timePath: string | null;
  min: string;
  max: string;
  maxAgeMs: number;
};

/** `rateMicro` is in millionths, like all rates in this file. */
export type ReadRate = { kind: 'ok'; rateMicro: bigint; at: UnixMs } | { kind: 'refused'; reason: string };

/** The bounds of a rate, in millionths. No order is priced at a rate outside them. */
export type RateBounds = { minMicro: bigint; maxMicro: bigint };

/** Returns the default bounds for a fixed rate: 0.7 to 1.4 times the rate, so that the upper bound is about twice the lower one. */
export function boundsAround(rateMicro: bigint): RateBounds {
  const minMicro = (rateMicro * 7n) / 10n;
  return { minMicro: minMicro > 0n ? minMicro : 1n, maxMicro: (rateMicro * 14n + 9n) / 10n };
}

/** Whether a rate differs from the previous one by more than a fifth. */
export function isLargeChange(beforeMicro: bigint, afterMicro: bigint): boolean {
  const apart = afterMicro > beforeMicro ? afterMicro - beforeMicro : beforeMicro - afterMicro;
  return apart * 5n > beforeMicro;
}

/**
 * Parses a stored source from JSON. If a value has the wrong type, someone wrote it directly to the database. Such a value becomes empty,
 * and then no rate counts as recent enough.
 */
export function readRateSource(text: string): RateSource {
  const kept = JSON.parse(text) as Record<string, unknown>;
  const textOf = (value: unknown) => (typeof value === 'string' ? value : '');
  const { url, path, timePath, min, max, maxAgeMs } = kept;
  return {
    ...{ url: textOf(url), path: textOf(path), min: textOf(min), max: textOf(max) },
    timePath: timePath === null ? null : textOf(timePath),
    maxAgeMs: Number.isSafeInteger(maxAgeMs) && Number(maxAgeMs) >= 0 ? Number(maxAgeMs) : -1,
  };
}

/** Returns a source's origin, without the path and query, because these may contain a token. */
export function originOf({ url }: Pick<RateSource, 'url'>): string {
  return parseUrl(url)?.origin ?? 'invalid URL';
}

/** Maximum difference between two clocks. */
const AHEAD_MS = 60_000;

/**
 * Whether a rate with this time may be used. A rate from the future is as wrong as an old one: if a clock was set back, the rate may be
 * much older than it seems.
 */
export function isCurrentRate(at: UnixMs, { maxAgeMs }: Pick<RateSource, 'maxAgeMs'>, now: UnixMs): boolean {
  return now - at <= maxAgeMs && at - now <= AHEAD_MS;
}

/**
 * Reads the rate from a source's response, such as `{"tether":{"cny":7.19,"last_updated_at":1790000000}}`, and checks whether the rate may
 * be used. It's read as text, never as a float. Digits beyond six decimals are cut off, so that no merchant gets less.
 */
export function readRate(answer: string, source: RateSource, now: UnixMs): ReadRate {
  const document = parseExact(answer);
  if (document === undefined) return refused('the response is not one JSON object or list of at most 8 KiB');
  const { path, timePath, min, max } = source;
  const number = textAt(document, path);
  if (number === null) return refused(`the response has no number at ${path}`);
  const rate = parseAmount(number.replace(/^(\d+\.\d{6})\d+$/, '$1'));
  if (rate.kind === 'invalid') return refused(`the value at ${path} is not a rate: it ${rate.reason}`);
  const [least, most] = [parseAmount(min), parseAmount(max)];
  if (least.kind === 'invalid' || most.kind === 'invalid') throw new Error('the rate bounds are not decimal numbers');
  if (rate.amountMicro < least.amountMicro || rate.amountMicro > most.amountMicro) {
    return refused(`the rate is ${number.slice(0, 24)}, which is not between ${min} and ${max}`);
  }
  const at = timePath === null ? now : readTime(textAt(document, timePath), now);
  if (at === null)
    return refused(
      `the response has no past time at ${timePath}: the time must be Unix time, or ISO 8601 with a time zone`,
    );
  if (isCurrentRate(at, source, now)) return { kind: 'ok', rateMicro: rate.amountMicro, at };
  return refused(`the source dates its rate ${toIso(at)}, which is too old`);
}

function refused(reason: string): ReadRate {
  return { kind: 'refused', reason };
}

/**
 * Parses JSON, but turns each number into its text: `7.19` becomes `"7.19"`. Only a document that ends with a bracket is certainly
 * complete.
 */
function parseExact(json: string): object | undefined {
  try {
    if (typeof JSON.parse(json) !== 'object') return undefined;
    const exact = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) =>
      token.startsWith('"') ? token : `"${token}"`,
    );
    return (JSON.parse(exact) as object | null) ?? undefined;
  } catch {
    return undefined;
  }
}

function textAt(document: object, pointer: string): string | null {
  let found: unknown = document;
  for (const part of pointer.slice(1).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return null;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === 'string' ? found : null;
}

const ISO = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;

/**
 * Reads the time in a source's response: seconds, milliseconds or ISO 8601. Returns `null` if the value isn't a time or is ahead of this
 * server's clock.
 */
function readTime(text: string | null, now: UnixMs): UnixMs | null {
  if (text === null) return null;
  const [, seconds, milliseconds] = /^(\d{10})(?:\.\d+)?$|^(\d{13})$/.exec(text) ?? [];
  const read =
    seconds === undefined
      ? Number(milliseconds ?? (ISO.test(text) ? Date.parse(text) : Number.NaN))
      : Number(seconds) * 1000;
  return Number.isSafeInteger(read) && read >= 0 && read <= now + AHEAD_MS ? unixMs(Math.min(read, now)) : null;
}
