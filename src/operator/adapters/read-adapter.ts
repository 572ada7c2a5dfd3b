import { say } from '../../domain/message.ts';
import { type MicroUsdt, parseAmount } from '../../domain/money.ts';
import type { RateBounds, RateSource } from '../../domain/rate.ts';
import { ADAPTER_KINDS } from '../../store/outbox/adapter-orders.ts';
import { clip } from '../input/clip.ts';
import { parseDuration } from '../input/duration.ts';
import { FieldError } from '../input/field-error.ts';

type Given = {
  kind: string;
  /** The price of one USDT in `currency`. */
  rate?: string | undefined;
  /** Or where it is read. */
  rateUrl?: string | undefined;
  ratePath?: string | undefined;
  rateTimePath?: string | undefined;
  rateMin?: string | undefined;
  rateMax?: string | undefined;
  rateMaxAge?: string | undefined;
  /** `7.2:9`: the rate in force and the new one, of who means a large change. */
  confirmRate?: string | undefined;
  currency?: string | undefined;
  secret?: string | undefined;
};

/** A fixed rate in millionths; `bounds`: null where none are given. */
export type FixedRate = { rateMicro: bigint; bounds: RateBounds | null };

/** Reads what an adapter is to be: with a fixed rate, or the source of one. Errors: `INVALID_ARGUMENT`. */
export function readAdapter(input: Given) {
  const kind = ADAPTER_KINDS.find((each) => each === input.kind);
  if (kind === undefined) throw new FieldError('kind', `is ${clip(input.kind)}: choose ${ADAPTER_KINDS.join(', ')}`);
  const currency = (input.currency ?? 'CNY').toUpperCase();
  if (!/^[A-Z]{3,5}$/.test(currency)) throw new FieldError('currency', `is ${clip(currency)}: give a code such as CNY`);
  const rate = readRateOrSource(input);
  return {
    kind,
    currency,
    rate,
    confirmRate: readConfirmation(input.confirmRate),
    secret: readShopSecret(input.secret),
  };
}

/** What somebody takes the rate in force and the new one to be. */
export type Confirmation = { text: string; fromMicro: bigint; toMicro: bigint };

function readConfirmation(text: string | undefined): Confirmation | null {
  if (text === undefined) return null;
  const [from, to] = text.split(':').map(parseAmount);
  if (from?.kind === 'ok' && to?.kind === 'ok' && text.split(':').length === 2)
    return { text, fromMicro: from.amountMicro, toMicro: to.amountMicro };
  throw new FieldError(
    'confirmRate',
    `is ${clip(text)}: write the rate in force, a colon and the new rate, such as 7.2:9`,
  );
}

function readRateOrSource(input: Given): FixedRate | RateSource {
  const { rate, rateUrl, ratePath = '', rateTimePath, rateMin = '', rateMax = '', rateMaxAge = '30m' } = input;
  if ((rate === undefined) === (rateUrl === undefined)) {
    throw new FieldError('rate', say`: give either this, such as 7.2, or ${{ field: 'rateUrl' }}`);
  }
  if (rateUrl === undefined) {
    const others = Object.entries(input).find(
      ([name, value]) => /^rate(Path|TimePath|MaxAge)$/.test(name) && value !== undefined,
    );
    if (others !== undefined) throw new FieldError(others[0], say`is for ${{ field: 'rateUrl' }}: leave it out`);
    const rateMicro = readPrice('rate', rate ?? '', 'the price of one USDT, such as 7.2');
    if (input.rateMin === undefined && input.rateMax === undefined) return { rateMicro, bounds: null };
    return { rateMicro, bounds: readBounds(rateMin, rateMax, 1n) };
  }
  readBounds(rateMin, rateMax, LEAST_RATE);
  const maxAgeMs = parseDuration(rateMaxAge) ?? 0;
  if (maxAgeMs < MAX_AGE.least || maxAgeMs > MAX_AGE.most) {
    throw new FieldError('rateMaxAge', `is ${clip(rateMaxAge)}: write 1m to 7d, such as 30m`);
  }
  const timePath = rateTimePath === undefined ? null : readPointer('rateTimePath', rateTimePath);
  const path = readPointer('ratePath', ratePath);
  return { url: rateUrl, path, timePath, min: rateMin, max: rateMax, maxAgeMs };
}

function readBounds(rateMin: string, rateMax: string, leastMicro: bigint): RateBounds {
  const minMicro = readPrice('rateMin', rateMin, 'the lowest price of one USDT that you accept, such as 6.5');
  const maxMicro = readPrice('rateMax', rateMax, 'the highest price of one USDT that you accept, such as 8');
  if (minMicro < leastMicro) {
    throw new FieldError('rateMin', `is ${clip(rateMin)}: give 0.01 or more, because six decimals of a rate are kept`);
  }
  if (maxMicro > 2n * minMicro) {
    throw new FieldError(
      'rateMax',
      say`is ${clip(rateMax)}, more than twice ${{ field: 'rateMin' }}: set them close, such as 6.8 and 7.6, because they protect you from a wrong rate`,
    );
  }
  if (minMicro > maxMicro) throw new FieldError('rateMax', say`is ${clip(rateMax)}, less than ${{ field: 'rateMin' }}`);
  return { minMicro, maxMicro };
}

/** 0.01: what is cut off is a ten-thousandth of it at most. */
const LEAST_RATE = 10_000n;
const MAX_AGE = { least: 60_000, most: 7 * 86_400_000 };

function readPrice(field: string, text: string, what: string): MicroUsdt {
  const price = parseAmount(text);
  if (price.kind === 'ok') return price.amountMicro;
  throw new FieldError(field, `${text === '' ? 'is missing' : price.reason}: give ${what}`);
}

function readPointer(field: string, text: string): string {
  if (text.length <= 200 && /^(\/([^~/\p{C}]|~[01])+)+$/u.test(text)) return text;
  throw new FieldError(
    field,
    `is ${clip(text)}: write where it stands in the answer as a JSON pointer of at most 200 characters, such as /tether/cny for {"tether":{"cny":7.19}}`,
  );
}

/** Everything that the form of stored secrets can hold, in what every shop and every URL can. */
const SECRET = /^[A-Za-z0-9_-]{24,64}$/;

function readShopSecret(secret: string | undefined): string | null {
  if (secret === undefined || SECRET.test(secret)) return secret ?? null;
  throw new FieldError(
    'secret',
    `(${secret.length} characters, not shown) is not 24 to 64 letters, digits, "_" and "-": leave it out for a new one`,
  );
}
