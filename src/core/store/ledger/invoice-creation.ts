import { AppError } from '../../domain/errors.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import { readOptions } from '../../domain/invoice-options.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import type { Sql } from '../db/database.ts';
import { type Sealer, sealedDeadline } from '../db/seal.ts';
import { SEALED_INVOICE } from '../db/sealed-tables.ts';
import { listColumns, micro, type Row, statement, text } from '../db/statement.ts';
import { isInUse } from './addresses.ts';

export type NewInvoice = {
  id: string;
  keyId: string;
  idempotencyKey: string;
  externalId: string;
  requestedMicro: MicroUsdt;
  /** See `formatOptions`. */
  options: string | null;
  checkoutToken: string;
  now: UnixMs;
  /** The time of a clock that ignores recent forward jumps; see `createSteadyClock`. */
  steadyAt: UnixMs;
};

/** The five public fields, and the other sealed fields that the database chose or that a trigger could have changed. */
const inserted = {
  id: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  checkoutToken: 'text',
  expiresAt: 'timestamptz',
  addressId: 'uuid',
  requestedMicro: micro<MicroUsdt>('int8'),
  payableMicro: micro<MicroUsdt>('int8'),
  options: 'text?',
} as const;

type CreatedInvoice = Row<typeof inserted>;

/** A project's rules for invoices, read a few seconds ago. If they have changed since, the statement creates nothing. */
export type Rule = {
  projectId: string;
  network: Network;
  policy: Policy;
  maxSurchargeMicro: bigint;
  invoiceLifetimeMs: number;
};

/** An invoice that gets the first free amount in `words` on an address (UUID), if the address is active. */
export type PlacedInvoice = NewInvoice & { rule: Rule; addressId: string; words: readonly MicroUsdt[] };

/** The inputs of the statement, in order: parameters for a single invoice, or arrays for many. `words` and `macs` are arrays as text. */
const FIELDS = [
  ...[
    'key_id uuid',
    'id uuid',
    'idempotency_key text',
    'external_id text',
    'requested_micro int8',
    'checkout_token text',
  ],
  ...['created_at timestamptz', 'expires_at timestamptz', 'project_id uuid', 'network text', 'policy text'],
  ...['address_id uuid', 'words text', 'macs text', 'options text', 'lifetime_ms int8', 'steady_at timestamptz'],
  'max_surcharge_micro int8',
].map((field) => field.split(' ') as [string, string]);
// `offset 0` hides the values from the planner. If the planner saw how few words there are, a custom plan would seem cheaper to it than a
// generic one. It would then plan every creation again, which takes longer than the creation itself.
const ALONE = `(select ${FIELDS.map(([name, type], i) => `$${i + 1}::${type} as ${name}`).join(', ')} offset 0) m`;
const MANY = `unnest(${FIELDS.map(([, type], i) => `$${i + 1}::${type}[]`).join(', ')}) m (${FIELDS.map(([name]) => name).join(', ')})`;

// A statement for many invoices can wait for another such statement only at an amount. Both reserve amounts in the same order, so they
// can't deadlock. If another statement is using the idempotency key or external id, the invoice isn't created. A statement for a single
// invoice holds no locks while it waits.
const KEPT_APART = `where (select set_config('lock_timeout', '1s', true)) is not null
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' key ' || m.idempotency_key, 0))
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' order ' || m.external_id, 0))
   order by m.address_id, w.word`;

/**
 * An invoice's payment must be later than this time. Usually this is the time of the newest block that had been examined when the invoice
 * was inserted. If no blocks have been visible for a while, it's the estimated chain time minus two minutes. The estimate starts from when
 * the end of the chain was last visible (`markLive`), so a clock that is always wrong by the same amount does no harm. It's skipped if the
 * process's and the database's clocks differ by a minute, because this means that one of them has been set forward since. The two minutes
 * cover clock errors that may be undetected: 30 s at that time, and a minute now. A bound that is too late would lose a payment.
 */
const PAYABLE_AFTER = `coalesce(greatest(s.seen_time,
     case when m.steady_at between now() - interval '1 minute' and now() + interval '1 minute' then s.live_time end), 'epoch')`;
/** When each network was last visible, computed once per statement and joined as `s`. */
const SEEN = `with seen as materialized (
     select c.network, coalesce(h.block_time, c.solid_time) as seen_time,
       c.live_time + (now() - c.live_at) - interval '2 minutes' as live_time
     from chain_cursors c
     left join lateral (select block_time from head_blocks where network = c.network order by number desc limit 1) h on true)`;

// The statement checks the key again, so that a key that was just revoked creates nothing. It also checks everything else that the MAC
// covers. `on conflict do nothing` covers every unique constraint, even between the rows of one statement, so a missing row means that one
// of them was violated. Whether a word is free is checked with a scalar subquery. With `not exists`, PostgreSQL may choose a join that
// reads all invoices of the address as long as it believes the table to be small. The limits force an index lookup for each key and address
// before locks are acquired, whatever PostgreSQL believes about the tables. A word isn't free either if a transfer of that amount arrived
// within a day; otherwise someone could order exactly the amount of another person's unmatched transfer.
const insertText = (members: string, more: string) => `insert into invoices (id, project_id, network, address_id,
     idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at, payable_after, api_key_id, options, mac)
   ${SEEN}
   select m.id, p.id, p.network, m.address_id, m.idempotency_key, m.external_id, m.requested_micro, w.word, m.checkout_token,
     m.created_at, m.expires_at, ${PAYABLE_AFTER}, m.key_id, m.options, decode(w.mac, 'hex')
   from ${members}
   cross join lateral (
     select p.id, p.network from api_keys k join projects p on p.id = k.project_id
     where k.id = m.key_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > m.created_at)
       and p.id = m.project_id and p.archived_at is null and p.network = m.network and p.policy = m.policy
       and p.invoice_lifetime_ms = m.lifetime_ms and p.max_surcharge_micro = m.max_surcharge_micro limit 1) p
   cross join lateral (
     select from addresses a where a.id = m.address_id and a.project_id = p.id and a.policy = m.policy and ${isInUse('a.')} limit 1) a
   cross join lateral (
     select word, mac from unnest(m.words::int8[], m.macs::text[]) as offered (word, mac)
     where (select i.address_id from invoices i where i.address_id = m.address_id and i.payable_micro = word) is null
       and (select r.address_id from arrivals r where r.address_id = m.address_id and r.amount_micro = word limit 1) is null limit 1) w
   left join seen s on s.network = p.network
   ${more}
   on conflict do nothing
   returning ${listColumns(inserted)}`;

const statements = {
  alone: statement('invoice-insert', inserted, insertText(ALONE, '')),
  many: statement('invoice-insert-many', inserted, insertText(MANY, KEPT_APART)),
};

/**
 * Creates invoices in one statement, in the given order. Each invoice is created as if it were alone, or not at all. The result is `null`
 * if the idempotency key or external id is taken or currently being used, if no word is free, or if the address is inactive. It's also
 * `null` if the rules have changed, the project is archived, or the key is invalid. If there's an error, none of them are created.
 */
export async function insertInvoices(db: Sql, invoices: readonly PlacedInvoice[]): Promise<(CreatedInvoice | null)[]> {
  const sealer = await db.sealer();
  const fields = invoices.map((invoice) => fieldsOf(invoice, sealer));
  const [only] = fields;
  const columns = FIELDS.map((_, index) => fields.map((each) => each[index] ?? null));
  const rows =
    only !== undefined && fields.length === 1
      ? await db.run(statements.alone, only)
      : await db.run(statements.many, columns);
  const created = new Map(rows.map((row) => [row.id, row]));
  return invoices.map((invoice) => {
    const row = created.get(invoice.id);
    if (row === undefined) return null;
    if (sealer !== null) refuseOther(invoice, row);
    return row;
  });
}

/**
 * Refuses a row that a planted trigger has changed. The row's MAC would be wrong, but no one would notice this until later. Throws
 * `ROW_CHANGED`.
 */
function refuseOther(wanted: PlacedInvoice, row: CreatedInvoice): void {
  const isAsWanted =
    row.addressId === wanted.addressId &&
    row.requestedMicro === wanted.requestedMicro &&
    wanted.words.includes(row.payableMicro) &&
    row.externalId === wanted.externalId &&
    row.checkoutToken === wanted.checkoutToken &&
    row.options === wanted.options &&
    row.expiresAt === deadlineOf(wanted);
  if (isAsWanted) return;
  throw new AppError('ROW_CHANGED', `the database stored invoice ${wanted.id} differently than requested`);
}

/**
 * A shop can shorten an invoice's lifetime, but can never extend it beyond the project's limit, even if that limit has just been changed.
 */
function deadlineOf({ now, rule, options }: PlacedInvoice): UnixMs {
  const { expiresInSeconds = Number.POSITIVE_INFINITY } = readOptions(options);
  return unixMs(now + Math.min(expiresInSeconds * 1000, rule.invoiceLifetimeMs));
}

function fieldsOf(invoice: PlacedInvoice, sealer: Sealer | null): readonly (string | bigint | null)[] {
  const { keyId, id, idempotencyKey, externalId, requestedMicro, options, checkoutToken, now, rule, steadyAt } =
    invoice;
  const { addressId, words } = invoice;
  const { projectId, network, policy, invoiceLifetimeMs, maxSurchargeMicro } = rule;
  const expiresAt = deadlineOf(invoice);
  const same = {
    id,
    projectId,
    network,
    addressId,
    idempotencyKey,
    externalId,
    requestedMicro,
    options,
    checkoutToken,
  };
  const row = { ...same, createdAt: now, expiresAt: sealedDeadline(network, expiresAt), apiKeyId: keyId };
  const macs = words.map((payableMicro) => sealer?.seal(SEALED_INVOICE, { ...row, payableMicro }).toString('hex'));
  return [
    ...[keyId, id, idempotencyKey, externalId, requestedMicro, checkoutToken, toIso(now), toIso(expiresAt)],
    ...[projectId, network, policy, addressId, `{${words.join(',')}}`, sealer === null ? '{}' : `{${macs.join(',')}}`],
    ...[options, BigInt(invoiceLifetimeMs), toIso(steadyAt), maxSurchargeMicro],
  ];
}
