import { parseAmount } from '../../domain/money.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';

const KINDS = ['epusdt', 'epay'] as const;

/** Reads what an adapter is to be. `rate`: the price of one USDT in `currency`. Errors: `INVALID_ARGUMENT`. */
export function readAdapter(input: {
  kind: string;
  rate: string;
  currency?: string | undefined;
  secret?: string | undefined;
}) {
  const kind = KINDS.find((each) => each === input.kind);
  if (kind === undefined) throw new FieldError('kind', `is ${clip(input.kind)}: choose ${KINDS.join(' or ')}`);
  const rate = parseAmount(input.rate);
  if (rate.kind === 'invalid') throw new FieldError('rate', `${rate.reason}: give the price of one USDT, such as 7.2`);
  const currency = (input.currency ?? 'CNY').toUpperCase();
  if (!/^[A-Z]{3,5}$/.test(currency)) throw new FieldError('currency', `is ${clip(currency)}: give a code such as CNY`);
  return { kind, currency, rateMicro: BigInt(rate.amountMicro), secret: readShopSecret(input.secret) };
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
