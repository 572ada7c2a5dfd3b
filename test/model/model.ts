import { DAMM } from '../support/damm-table.ts';

/**
 * What the API promises, written from its documentation and from nothing else: one project's invoices, keys and addresses, and which outcomes
 * of an operation are right. The service decides at random which amount an invoice gets, so an outcome is judged, not foretold.
 */
export type Policy = 'tail' | 'tail-3' | 'exact';
type Status = 'PENDING' | 'EXPIRED' | 'PAID';

export type ModelInvoice = {
  invoiceId: string;
  project: number;
  externalId: string;
  idempotencyKey: string;
  amountMicro: bigint;
  address: string;
  payableMicro: bigint;
  status: Status;
};

type ModelKey = { project: number; isRevoked: boolean; tokens: number };
type ModelAddress = { project: number; isRetired: boolean };

export type Model = {
  policies: readonly Policy[];
  /** Of the tails, in units of their last decimal. */
  surchargeUnits: bigint;
  limit: { perSecond: number; burst: number };
  keys: ModelKey[];
  addresses: Map<string, ModelAddress>;
  invoices: Map<string, ModelInvoice>;
  /** Failed authentications of this client. Its limit fills with every second that a run takes, so only its beginning is certain. */
  failures: number;
  /** Per project: the ids of the events that the feed has told. */
  feeds: string[][];
  /** Per project: exact transfers after the first, and transfers that fit nothing. */
  strays: { duplicate: number; unmatched: number }[];
};

/** So many failed authentications a client may make at once. */
export const FAILURE_BURST = 20;
/** What buckets of keys gain by the time that a run takes by itself, at most. */
export const DRIFT_TOKENS = 0.1;

export type Operation =
  | { kind: 'create'; key: number; idempotencyKey: string; externalId: string; amount: string; isInvalid: boolean }
  | { kind: 'read'; key: number; invoiceId: string }
  | { kind: 'find'; key: number; externalId: string }
  | { kind: 'feed' | 'list'; key: number; limit: number }
  | { kind: 'revoke'; key: number }
  | { kind: 'retire' | 'activate'; address: string };

export type Outcome = {
  status: number;
  code: string | null;
  invoice: { invoiceId: string; externalId: string; status: string } | null;
  /** The first page of the project's invoices, and whether it says that there are more. */
  listed: { invoices: { invoiceId: string; status: string }[]; hasNext: boolean } | null;
  isReplayed: boolean;
  conflict: { rule: string; fields: string[]; invoiceId: string } | null;
  /** What the new invoice reserves. */
  reserved: { address: string; payableMicro: bigint } | null;
  events: { id: string; type: string; invoiceId: string | null; sequence: number }[] | null;
  /** The feed goes on behind these. */
  hasMore: boolean;
};

/** A copy on which other orders of the same operations can be tried. */
export function cloneModel(model: Model): Model {
  return {
    ...model,
    keys: model.keys.map((key) => ({ ...key })),
    addresses: new Map([...model.addresses].map(([address, each]) => [address, { ...each }])),
    invoices: new Map(model.invoices),
    feeds: model.feeds.map((feed) => [...feed]),
    strays: model.strays.map((stray) => ({ ...stray })),
  };
}

/** Lets time pass: keys may ask again. */
export function pass(model: Model, ms: number): void {
  const { perSecond, burst } = model.limit;
  for (const key of model.keys) key.tokens = Math.min(burst, key.tokens + (ms / 1000) * perSecond);
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
