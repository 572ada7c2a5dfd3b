import type { Scope } from '../../src/core/domain/scope.ts';
import { DAMM } from '../support/damm-table.ts';
import type { Json } from '../support/service.ts';

/**
 * What the API promises, written from its documentation and from nothing else: one project's invoices, keys and addresses, and which outcomes
 * of an operation are right. The service decides at random which amount an invoice gets, so an outcome is judged, not foretold.
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
  /** As it was told. */
  withdrawnAt: string | null;
};

/** `id`: as it was first told. */
export type ModelTransfer = {
  kind: TransferKind;
  txId: string;
  to: string;
  amountMicro: bigint;
  /** What it pays or, of a duplicate, what was paid before. */
  invoiceId: string | null;
  id: string | null;
};

/** `scopes` `null`: a key that was made without. `endpointTokens`: for operations on endpoints, which take one more. */
type ModelKey = {
  project: number;
  isRevoked: boolean;
  tokens: number;
  endpointTokens: number;
  scopes: readonly Scope[] | null;
};
/** A door of a project for shops that speak another protocol. A USDT costs 7.2 of its currency, as long as its rate is not too old. */
export type ModelAdapter = {
  project: number;
  dialect: 'epusdt' | 'gmpay' | 'epay';
  isRevoked: boolean;
  isRateOld: boolean;
  tokens: number;
  endpointId: string;
};
/** Where a project is told. `isOwn`: the shop's, and not an adapter's. */
export type ModelEndpoint = { project: number; url: string; description: string; isDisabled: boolean; isOwn: boolean };
type ModelAddress = { project: number; isRetired: boolean };

export type Model = {
  policies: readonly Policy[];
  /** Of the tails, in units of their last decimal. */
  surchargeUnits: bigint;
  limit: { perSecond: number; burst: number };
  keys: ModelKey[];
  adapters: ModelAdapter[];
  endpoints: Map<string, ModelEndpoint>;
  /** Where a server takes whatever is told. */
  sinkUrl: string;
  addresses: Map<string, ModelAddress>;
  invoices: Map<string, ModelInvoice>;
  /** Failed authentications of this client. Its limit fills with every second that a run takes, so only its beginning is certain. */
  failures: number;
  /** Per project: the ids of the events that the feed has told. */
  feeds: string[][];
  /** Per project: in the order in which they were recorded. */
  transfers: ModelTransfer[][];
};

/** From the creation of an invoice to its deadline. */
export const LIFETIME_MS = 30 * 60_000;
/** Operations on endpoints: of a key's limit otherwise. */
export function endpointLimit({ perSecond, burst }: Model['limit']): Model['limit'] {
  return { perSecond: perSecond / 50, burst: Math.max(1, Math.floor(burst / 10)) };
}
/** So many failed authentications a client may make at once. */
export const FAILURE_BURST = 20;
/** What buckets of keys gain by the time that a run takes by itself, at most. */
const DRIFT_TOKENS = 0.1;

type Creation = {
  idempotencyKey: string;
  externalId: string;
  amount: string;
  isInvalid: boolean;
  /** What a shop may say beside what it must. */
  said?: Said;
};
export type Said = {
  returnUrl?: string;
  expiresInSeconds?: number;
  description?: string;
  metadata?: Record<string, string>;
};

/** Until the deadline of an invoice. */
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

/** What a key does with the endpoints of its project. */
export type EndpointOperation = { kind: 'endpoint'; key: number } & (
  | { act: 'add'; url: string; isInvalid: boolean }
  | { act: 'list' }
  | { act: 'show' | 'disable' | 'enable'; endpointId: string }
  | { act: 'change'; endpointId: string; description: string }
);

/** An order, a look at one, the age of the rate, and the end of an adapter. */
export type AdapterOperation = { adapter: number } & (
  | { kind: 'order'; orderId: string; amount: string; isInvalid: boolean; isForged: boolean }
  | { kind: 'trade'; invoiceId: string }
  | { kind: 'rate'; isOld: boolean }
  | { kind: 'disable' }
);

/** A page of a list; `after` is an id of that list. Without `only`, transfers are those that pay nothing. */
export type ListOperation = { key: number; limit: number; after: string | null } & (
  | { kind: 'list'; status: Status | null; createdAfterMs: number | null }
  | { kind: 'transfers'; only: TransferKind | null }
);

export type Outcome = {
  status: number;
  code: string | null;
  invoice: { invoiceId: string; externalId: string; status: string; expiresAt: string } | null;
  /** A page of a list as it came, and the cursor of the next one. */
  page: { data: Json[]; next: string | null } | null;
  withdrawnAt: string | null;
  isReplayed: boolean;
  conflict: { rule: string; fields: string[]; invoiceId: string } | null;
  /** What the new invoice reserves, and when the database says that it was made. */
  reserved: { address: string; payableMicro: bigint; createdMs?: number } | null;
  /** As they were told. */
  endpoints: Json[] | null;
  events: { id: string; type: string; invoiceId: string | null; sequence: number }[] | null;
  /** The feed goes on behind these. */
  hasMore: boolean;
};

/** A copy on which other orders of the same operations can be tried. */
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

/** Lets time pass: keys may ask again. */
export function pass(model: Model, ms: number): void {
  const fill = (tokens: number, { perSecond, burst }: Model['limit']) =>
    Math.min(burst, tokens + (ms / 1000) * perSecond);
  for (const each of [...model.keys, ...model.adapters]) each.tokens = fill(each.tokens, model.limit);
  for (const key of model.keys) key.endpointTokens = fill(key.endpointTokens, endpointLimit(model.limit));
}

/** Takes a token of who asked; says whether the answer is the refusal for which there is none, and what is wrong with it. */
export function spend(bucket: { tokens: number }, status: number): { isRefused: boolean; wrong: string | null } {
  if (status === 429 && bucket.tokens < 1) return { isRefused: true, wrong: null };
  if (bucket.tokens < 1 - DRIFT_TOKENS) return { isRefused: true, wrong: 'who has no token was answered' };
  if (status === 429) return { isRefused: true, wrong: 'who has a token was refused with 429' };
  bucket.tokens = Math.max(0, bucket.tokens - 1);
  return { isRefused: false, wrong: null };
}

/** `25.00` as 25000000. The documentation's own definition of an amount. */
export function toMicro(amount: string): bigint {
  const [whole = '', decimals = ''] = amount.split('.');
  return BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, '0'));
}

export function isCodeWord(micro: bigint): boolean {
  const interim = [...String(micro)].reduce((row, digit) => Number(DAMM[row]?.[Number(digit)]), 0);
  return interim === 0 && micro % 10n !== 0n;
}

/** The payable amounts that an invoice of this amount may get on an address. */
export function wordsFor(model: Model, project: number, amountMicro: bigint): bigint[] {
  const policy = model.policies[project];
  if (policy === 'exact') return [amountMicro];
  const unit = policy === 'tail-3' ? 1000n : 1n;
  const first = (amountMicro + unit - 1n) / unit;
  const range = Array.from({ length: Number(model.surchargeUnits) }, (_, i) => first + BigInt(i));
  const isBelow = (units: bigint) => units * unit < amountMicro + model.surchargeUnits * unit;
  return range.filter((units) => isBelow(units) && isCodeWord(units)).map((units) => units * unit);
}

/** Whether any address in use of the project has a payable amount left. */
export function isAnyFree(model: Model, project: number, amountMicro: bigint): boolean {
  const taken = new Set([...model.invoices.values()].map(({ address, payableMicro }) => `${address} ${payableMicro}`));
  const words = wordsFor(model, project, amountMicro);
  return [...model.addresses].some(
    ([address, owner]) =>
      owner.project === project && !owner.isRetired && words.some((word) => !taken.has(`${address} ${word}`)),
  );
}
