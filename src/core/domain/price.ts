import { asTyped, formatAmount, type MicroUsdt, microUsdt, parseAmount } from './money.ts';
import { toIso, type UnixMs, unixMs } from './time.ts';
import { parseUrl } from './url.ts';

/** The price of an order in another currency. `amount` has six decimals, so that equal prices have equal text. */
export type Price = { amount: string; currency: string };

/**
 * A price with the rate that it was converted at: the price of one USDT. `rateAt` is the rate's time, and `rateSource` is the origin that
 * the rate was read from. If the operator set the rate, `rateAt` is `null` and `rateSource` is `fixed`.
 */
export type ConvertedPrice = Price & { rate: string; rateAt: string | null; rateSource: string };

/** Describes a price as payers know it, with its currency's decimals, or more if it has more: `25.00 EUR`, `1500 JPY`, `0.925 EUR`. */
export function formatPrice({ amount, currency }: Price): string {
  return `${asTyped(amount, decimalsOf(currency))} ${currency}`;
}

/** The decimals of a currency of ISO 4217, otherwise 2. */
function decimalsOf(currency: string): number {
  if (currency.length !== 3) return 2;
  return new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().minimumFractionDigits ?? 2;
}

/** Describes a price and its rate: `25.00 EUR at 0.92 EUR for 1 USDT, read 2026-09-01T12:00:00.000Z from https://rates.example`. */
export function describePrice({ rate, rateAt, rateSource, ...price }: ConvertedPrice): string {
  const converted = `${formatPrice(price)} at ${formatPrice({ ...price, amount: rate })} for 1 USDT`;
  return rateAt === null ? `${converted}, a fixed rate` : `${converted}, read ${rateAt} from ${rateSource}`;
}

/** The largest amount that an invoice can have. */
const MOST = 10n ** 18n - 1n;

/**
 * Converts a price to USDT and rounds it up to a millionth, so that no merchant gets less and no payer pays a millionth too much. Both
 * arguments are in millionths. Returns `null` if no invoice can have the result.
 */
export function convertPrice(amountMicro: MicroUsdt, rateMicro: bigint): MicroUsdt | null {
  if (rateMicro <= 0n) throw new RangeError('a rate is not positive');
  const converted = (amountMicro * 1_000_000n + rateMicro - 1n) / rateMicro;
  return converted >= 1n && converted <= MOST ? microUsdt(converted) : null;
}

/** A fixed rate, or the last rate that a source returned, in millionths. */
type Rate = { rateMicro: bigint; rateSource: string | null; readMicro: bigint | null; readAt: UnixMs | null };

/** Returns the rate in force, or `null` if the last known one is too old. */
export function rateInForce({ rateMicro, rateSource, readMicro, readAt }: Rate, now: UnixMs) {
  if (rateSource === null) return { rateMicro, ...describe(rateMicro), rateAt: null, rateSource: 'fixed' };
  const source = readRateSource(rateSource);
  if (readMicro === null || readAt === null || !isCurrentRate(readAt, source, now)) return null;
  return { rateMicro: readMicro, ...describe(readMicro), rateAt: toIso(readAt), rateSource: originOf(source) };
}

const describe = (rateMicro: bigint) => ({ rate: formatAmount(microUsdt(rateMicro)) });

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
