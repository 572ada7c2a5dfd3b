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
  /** The time by a clock that was not put forward lately: see `createSteadyClock`. */
  steadyAt: UnixMs;
};

/** The five fields, and what the MAC of the row covers besides that the database chose or may have been made to change. */
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

export type CreatedInvoice = Row<typeof inserted>;

/** What holds for the invoices of a project, as it was read some seconds ago: the statement creates nothing under another rule. */
export type Rule = {
  projectId: string;
  network: Network;
  policy: Policy;
  maxSurchargeMicro: bigint;
  invoiceLifetimeMs: number;
};

/** An invoice that gets the first of `words` that is free on an address (UUID), if that is in use. */
export type PlacedInvoice = NewInvoice & { rule: Rule; addressId: string; words: readonly MicroUsdt[] };

/** What the statement takes, in this order: one invoice as parameters, or many as arrays. `words` and `macs` are arrays as text. */
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
].map((field) => field.split(' ') as [string, string]);
// `offset 0` hides the values from the planner. If it saw how few words there are, a plan for these alone would seem cheaper than one for all,
// and PostgreSQL would plan each creation again, which takes longer than the creation.
const ALONE = `(select ${FIELDS.map(([name, type], i) => `$${i + 1}::${type} as ${name}`).join(', ')} offset 0) m`;
const MANY = `unnest(${FIELDS.map(([, type], i) => `$${i + 1}::${type}[]`).join(', ')}) m (${FIELDS.map(([name]) => name).join(', ')})`;

// A statement of many waits for no other of many but at an amount, and takes amounts in one order, so no two wait for each other: who
// finds its idempotency key or external id in use by another gets no row. A statement of one holds nothing while it waits.
const KEPT_APART = `where (select set_config('lock_timeout', '1s', true)) is not null
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' key ' || m.idempotency_key, 0))
     and pg_try_advisory_xact_lock(hashtextextended(p.id || ' order ' || m.external_id, 0))
   order by m.address_id, w.word`;

/**
 * What pays an invoice is later than this: than the newest block that was examined when it was inserted; and where blocks were not seen for a
 * while, than the chain's time by then, less two minutes. That is counted on from when the chain was last seen at its end (`markLive`), so a clock
 * that is always wrong does no harm. It is left out where the clocks of process and database differ by a minute: one was put forward since.
 * Two minutes are more than what may pass unseen, 30 s then and a minute now: a bound that is too late would lose a payment.
 */
const PAYABLE_AFTER = `coalesce(greatest(s.seen_time,
     case when m.steady_at between now() - interval '1 minute' and now() + interval '1 minute' then s.live_time end), 'epoch')`;
/** What was seen of each network: asked once for all rows of a statement, which join it as `s`. */
const SEEN = `with seen as materialized (
     select c.network, coalesce(h.block_time, c.solid_time) as seen_time,
       c.live_time + (now() - c.live_at) - interval '2 minutes' as live_time
     from chain_cursors c
     left join lateral (select block_time from head_blocks where network = c.network order by number desc limit 1) h on true)`;

// The key is checked again inside the statement, so a key that was revoked a moment ago creates nothing, and so is all that the MAC
// covers. `on conflict do nothing` covers every unique constraint, also between the rows of one statement: no row back means that one of
// them held. Whether a word is free is asked by a scalar subquery, because PostgreSQL may turn `not exists` into a join that reads all
// invoices of the address: it does so as long as it believes the table to be small. The limits make it look up each key and address by its
// own index, whatever it believes of the tables, and before it takes locks. A word is not free either if that much arrived within a day: nobody
// may order exactly what somebody else sent and paid nothing with.
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
       and p.invoice_lifetime_ms = m.lifetime_ms limit 1) p
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
 * Creates invoices in one statement: each as if it were alone, or not at all, in their order. `null`: idempotency key or external id taken, or
 * in use at this moment; none of the words free, the address not in use, another rule, the project archived, or the key not valid. An error is that of all: none
 * is created.
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

/** A trigger that somebody planted could have changed it. Its MAC would not fit, but that would be found out only later. Error: `ROW_CHANGED`. */
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

/** A shop may want an invoice to wait for less than its project says, and never for more, also where that was changed a moment ago. */
function deadlineOf({ now, rule, options }: PlacedInvoice): UnixMs {
  const { expiresInSeconds = Number.POSITIVE_INFINITY } = readOptions(options);
  return unixMs(now + Math.min(expiresInSeconds * 1000, rule.invoiceLifetimeMs));
}

function fieldsOf(invoice: PlacedInvoice, sealer: Sealer | null): readonly (string | bigint | null)[] {
  const { keyId, id, idempotencyKey, externalId, requestedMicro, options, checkoutToken, now, rule, steadyAt } =
    invoice;
  const { addressId, words } = invoice;
  const { projectId, network, policy, invoiceLifetimeMs } = rule;
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
    ...[options, BigInt(invoiceLifetimeMs), toIso(steadyAt)],
  ];
}
