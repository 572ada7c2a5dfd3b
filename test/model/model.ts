import type { Scope } from '../../src/core/domain/api-key.ts';
import { DAMM } from '../support/damm-table.ts';
import type { Json } from '../support/service.ts';

/**
 * The API's promises, written only from its documentation: one project's invoices, keys and addresses, and which outcomes of an operation
 * are right. The service chooses an invoice's amount at random, so an outcome is judged, not predicted.
 */
export type Policy = 'tail' | 'tail-3' | 'exact';
export type Status = 'PENDING' | 'EXPIRED' | 'PAID';
export type TransferKind = 'matched' | 'duplicate' | 'unmatched';

export type ModelInvoice = {
  invoiceId: string;
  project: number;
  externalId: string;
  idempotencyKey: string;
  amountMicro: bigint;
  said: Said;
  address: string;
  payableMicro: bigint;
  /** Unix milliseconds. */
  createdMs: number;
  expiresMs: number;
  status: Status;
  /** As it was first reported. */
  withdrawnAt: string | null;
};

/** `id` is the one first reported. */
export type ModelTransfer = {
  kind: TransferKind;
  txId: string;
  to: string;
  amountMicro: bigint;
  /** The invoice that it pays or, for a duplicate, the invoice that was already paid. */
  invoiceId: string | null;
  id: string | null;
};

/**
 * `scopes` is `null` for a key created without any. `endpointTokens` are for operations on endpoints, which use up one additional token.
 */
type ModelKey = {
  project: number;
  isRevoked: boolean;
  tokens: number;
  endpointTokens: number;
  scopes: readonly Scope[] | null;
};
/** An adapter of a project for shops that use another protocol. A USDT costs 7.2 of its currency, unless its rate is too old. */
export type ModelAdapter = {
  project: number;
  dialect: 'epusdt' | 'gmpay' | 'epay';
  isRevoked: boolean;
  isRateOld: boolean;
  tokens: number;
  endpointId: string;
};
/** An endpoint of a project. `isOwn` means the shop's, not an adapter's. */
export type ModelEndpoint = { project: number; url: string; description: string; isDisabled: boolean; isOwn: boolean };
type ModelAddress = { project: number; isRetired: boolean };

export type Model = {
  policies: readonly Policy[];
  /** The limit of tails, in units of their last decimal. */
  surchargeUnits: bigint;
  limit: { perSecond: number; burst: number };
  keys: ModelKey[];
  adapters: ModelAdapter[];
  endpoints: Map<string, ModelEndpoint>;
  /** A server that accepts every webhook. */
  sinkUrl: string;
  addresses: Map<string, ModelAddress>;
  invoices: Map<string, ModelInvoice>;
  /** This client's failed authentications. The limit refills with every second of a run, so only its beginning is certain. */
  failures: number;
  /** By project: the ids of the events that the feed has returned. */
  feeds: string[][];
  /** By project, in the order in which they were recorded. */
  transfers: ModelTransfer[][];
};

/** From an invoice's creation to its deadline. */
export const LIFETIME_MS = 30 * 60_000;
/** The limit for operations on endpoints, derived from the limit of a key. */
export function endpointLimit({ perSecond, burst }: Model['limit']): Model['limit'] {
  return { perSecond: perSecond / 50, burst: Math.max(1, Math.floor(burst / 10)) };
}
/** How many failed authentications a client may make at once. */
export const FAILURE_BURST = 20;
/** The most that the keys' buckets gain during a run. */
const DRIFT_TOKENS = 0.1;

type Creation = {
  idempotencyKey: string;
  externalId: string;
  /** `25.00`, or `CNY 180` for a price. */
  amount: string;
  isInvalid: boolean;
  /** Optional members of a shop's request. */
  said?: Said;
};
export type Said = {
  returnUrl?: string;
  expiresInSeconds?: number;
  description?: string;
  metadata?: Record<string, string>;
  /** The price of a creation that had one, such as `180000000 CNY`. */
  price?: string;
};

/** Converts an amount or a price to USDT, at 7.2 CNY and rounded up to a millionth. */
export function toWanted(amount: string): { amountMicro: bigint; price?: string } {
  const [text = '', currency] = amount.split(' ').toReversed();
  if (currency === undefined) return { amountMicro: toMicro(text) };
  const priceMicro = toMicro(text);
  return { amountMicro: (priceMicro * 1_000_000n + 7_199_999n) / 7_200_000n, price: `${priceMicro} ${currency}` };
}

/** Returns the time until an invoice's deadline. */
export function lifetimeOf({ expiresInSeconds }: Said): number {
  return expiresInSeconds === undefined ? LIFETIME_MS : expiresInSeconds * 1000;
}

export type Operation =
  | (Creation & { kind: 'create'; key: number })
  | { kind: 'read' | 'withdraw'; key: number; invoiceId: string }
  | { kind: 'find'; key: number; externalId: string }
  | { kind: 'feed'; key: number; limit: number; types: string[] | null }
  | ListOperation
  | AdapterOperation
  | EndpointOperation
  | { kind: 'revoke'; key: number }
  | { kind: 'retire' | 'activate'; address: string };

/** Operations on a project's endpoints. */
export type EndpointOperation = { kind: 'endpoint'; key: number } & (
  | { act: 'add'; url: string; isInvalid: boolean }
  | { act: 'list' }
  | { act: 'show' | 'disable' | 'enable'; endpointId: string }
  | { act: 'change'; endpointId: string; description: string }
);

/** Creating an order, reading one, ageing the rate, and disabling an adapter. */
export type AdapterOperation = { adapter: number } & (
  | { kind: 'order'; orderId: string; amount: string; isInvalid: boolean; isForged: boolean }
  | { kind: 'trade'; invoiceId: string }
  | { kind: 'rate'; isOld: boolean }
  | { kind: 'disable' }
);

/** Reads a page of a list; `after` is an id of that list. Without `only`, lists unmatched transfers. */
export type ListOperation = { key: number; limit: number; after: string | null } & (
  | { kind: 'list'; status: Status | null; createdAfterMs: number | null }
  | { kind: 'transfers'; only: TransferKind | null }
);

export type Outcome = {
  status: number;
  code: string | null;
  invoice: { invoiceId: string; externalId: string; status: string; expiresAt: string } | null;
  /** A page of a list as received, with the cursor of the next one. */
  page: { data: Json[]; next: string | null } | null;
  withdrawnAt: string | null;
  isReplayed: boolean;
  conflict: { rule: string; fields: string[]; invoiceId: string } | null;
  /** The reservation of a new invoice, and its creation time in the database. */
  reserved: { address: string; payableMicro: bigint; createdMs?: number } | null;
  /** As received. */
  endpoints: Json[] | null;
  events: { id: string; type: string; invoiceId: string | null; sequence: number }[] | null;
  /** The feed continues after these. */
  hasMore: boolean;
};

/** Copies the model, so that other orders of the same operations can be tried. */
export function cloneModel(model: Model): Model {
  return {
    ...model,
    keys: model.keys.map((key) => ({ ...key })),
    adapters: model.adapters.map((adapter) => ({ ...adapter })),
    endpoints: new Map([...model.endpoints].map(([id, each]) => [id, { ...each }])),
    addresses: new Map([...model.addresses].map(([address, each]) => [address, { ...each }])),
    invoices: new Map(model.invoices),
    feeds: model.feeds.map((feed) => [...feed]),
    transfers: model.transfers.map((transfers) => transfers.map((each) => ({ ...each }))),
  };
}

/** Lets time pass, so that keys may make requests again. */
export function pass(model: Model, ms: number): void {
  const fill = (tokens: number, { perSecond, burst }: Model['limit']) =>
    Math.min(burst, tokens + (ms / 1000) * perSecond);
  for (const each of [...model.keys, ...model.adapters]) each.tokens = fill(each.tokens, model.limit);
  for (const key of model.keys) key.endpointTokens = fill(key.endpointTokens, endpointLimit(model.limit));
}

/** Uses up the caller's token. Returns whether the answer is the refusal for a missing token, and what is wrong with it. */
export function spend(bucket: { tokens: number }, status: number): { isRefused: boolean; wrong: string | null } {
  if (status === 429 && bucket.tokens < 1) return { isRefused: true, wrong: null };
  if (bucket.tokens < 1 - DRIFT_TOKENS) return { isRefused: true, wrong: 'who has no token was answered' };
  if (status === 429) return { isRefused: true, wrong: 'who has a token was refused with 429' };
  bucket.tokens = Math.max(0, bucket.tokens - 1);
  return { isRefused: false, wrong: null };
}

/** Converts `25.00` to 25000000, by the documentation's own definition of an amount. */
export function toMicro(amount: string): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  return BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, '0'));
}

export function isCodeWord(micro: bigint): boolean {
  const interim = [...String(micro)].reduce((row, digit) => Number(DAMM[row]?.[Number(digit)]), 0);
  return interim === 0 && micro % 10n !== 0n;
}

/** Returns the payable amounts that an invoice of this amount may get on an address. */
export function wordsFor(model: Model, project: number, amountMicro: bigint): bigint[] {
  const policy = model.policies[project];
  if (policy === 'exact') return [amountMicro];
  const unit = policy === 'tail-3' ? 1000n : 1n;
  const first = (amountMicro + unit - 1n) / unit;
  const range = Array.from({ length: Number(model.surchargeUnits) }, (_, i) => first + BigInt(i));
  const isBelow = (units: bigint) => units * unit < amountMicro + model.surchargeUnits * unit;
  return range.filter((units) => isBelow(units) && isCodeWord(units)).map((units) => units * unit);
}

/** Whether any active address of the project has a free payable amount. */
export function isAnyFree(model: Model, project: number, amountMicro: bigint): boolean {
  const taken = new Set([...model.invoices.values()].map(({ address, payableMicro }) => `${address} ${payableMicro}`));
  const words = wordsFor(model, project, amountMicro);
  return [...model.addresses].some(
    ([address, owner]) =>
      owner.project === project && !owner.isRetired && words.some((word) => !taken.has(`${address} ${word}`)),
  );
}
