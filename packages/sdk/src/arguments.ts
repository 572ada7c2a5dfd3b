import type { CreateInvoice } from './types.ts';

/** Checks of the caller's arguments, before anything is sent. Each throws a TypeError that says what is expected. */

/** Returns the body to send for an invoice. The API rejects unknown fields. */
export function readCreate(input: CreateInvoice): CreateInvoice {
  const {
    price,
    amount = price?.amount,
    externalId,
    asset = 'USDT',
    network = 'TRON',
  } = Object(input) as Partial<CreateInvoice>;
  if (/^\d+\.\d{7,}$/.test(amount as string)) refuse('amount has too many decimals: at most 6');
  if (typeof amount !== 'string' || !/^(?=.*[1-9])(0|[1-9]\d{0,11})(\.\d{1,6})?$/.test(amount)) {
    refuse('amount must be a decimal string greater than 0');
  }
  if (asset !== 'USDT' || network !== 'TRON') refuse('only USDT on TRON is accepted');
  return { ...input, asset, network, externalId: readExternalId(externalId as string) } as CreateInvoice;
}

export function readKey(options: { idempotencyKey: string }): string {
  const { idempotencyKey } = Object(options) as typeof options;
  if (typeof idempotencyKey === 'string' && /^[!-~]{1,255}$/.test(idempotencyKey)) return idempotencyKey;
  return refuse('idempotencyKey must be 1 to 255 visible ASCII characters');
}

export function readExternalId(externalId: string): string {
  // A lone surrogate would be sent as a different character, and so refer to a different id.
  const isText = typeof externalId === 'string' && !/\p{Surrogate}|\0/u.test(externalId);
  if (isText && /^.{1,200}$/su.test(externalId)) return externalId;
  return refuse('externalId must be a string of 1 to 200 characters');
}

export function readId(id: string, kind: 'inv' | 'evt' | 'whe'): string {
  if (typeof id === 'string' && /^\w{5,100}$/.test(id) && id.startsWith(`${kind}_`)) return id;
  return refuse(`the id must begin with ${kind}_`);
}

/** Returns the query of the request. */
export function readExpand(expand: string | readonly string[] = ''): string {
  const asked = String(expand);
  if (!/^(\b,?(payment|metadata)\b)*$/.test(asked)) refuse('expand must be payment or metadata');
  return asked && `?expand=${asked}`;
}

export function readLimit(limit: number): string {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 100) return String(limit);
  return refuse('limit must be a whole number, 1 to 100');
}

function refuse(message: string): never {
  throw new TypeError(message);
}
