import type { ProjectedInvoice } from '../../domain/event.ts';
import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { type Ask, coalesce } from '../../runtime/concurrency.ts';
import type { Database } from '../db/database.ts';
import { answerOf, commandOf, rowsOf } from '../db/rows-of.ts';
import { sealOf } from '../db/seal.ts';
import { SEALED_INVOICE, SEALED_PAID, SEALED_STATUS, SEALED_WITHDRAWN } from '../db/sealed-tables.ts';
import { count, listColumns, maybe, micro, type Row, sealed, statement, text } from '../db/statement.ts';

/** The columns for the API's invoice fields. */
export const projected = {
  id: 'uuid',
  externalId: 'text',
  status: text<InvoiceStatus>(),
  checkoutToken: 'text',
  expiresAt: 'timestamptz',
  seal: sealed(SEALED_INVOICE),
  paidSeal: sealed(SEALED_PAID),
  statusSeal: sealed(SEALED_STATUS),
} as const;

const reserved = {
  ...projected,
  requestedMicro: micro<MicroUsdt>('int8'),
  options: 'text?',
  hasKey: 'bool',
} as const;

export type ReservedInvoice = Row<typeof reserved>;

/** Returns the project's invoices with this idempotency key or this external id, at most two. */
export const findReserved = rowsOf(
  'invoice-select-reserved',
  reserved,
  `select ${listColumns(reserved, '', { hasKey: 'idempotency_key = $2' })}
   from invoices where project_id = $1 and (idempotency_key = $2 or external_id = $3) limit 2`,
  (projectId: string, idempotencyKey: string, externalId: string) => [projectId, idempotencyKey, externalId],
);

const maybeProjected = { invoice: maybe(projected) } as const;

const SELECT_BY_KEY = `select ${listColumns(maybeProjected, 'i.')}
   from api_keys k left join invoices i on i.project_id = k.project_id and`;
const KEY_IS_VALID = 'k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)';

export type FoundInvoice = { kind: 'found'; invoice: ProjectedInvoice } | { kind: 'none' } | { kind: 'key-not-valid' };

/** Returns the invoice with this id if it belongs to the key's project. The key is checked in the same statement. */
export const findInvoice = answerOf(
  'invoice-select',
  maybeProjected,
  `${SELECT_BY_KEY} i.id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, id: string, now: UnixMs) => [keyId, id, new Date(now)],
  ([row]) => toFound(row),
);

/** Like `findInvoice`, but by the integrator's own id. */
export const findInvoiceByExternalId = answerOf(
  'invoice-select-by-external-id',
  maybeProjected,
  `${SELECT_BY_KEY} i.external_id = $2 where ${KEY_IS_VALID}`,
  (keyId: string, externalId: string, now: UnixMs) => [keyId, externalId, new Date(now)],
  ([row]) => toFound(row),
);

/** Converts the row found for a key. The key is invalid if there's no row. */
function toFound(row: Row<typeof maybeProjected> | undefined): FoundInvoice {
  if (row === undefined) return { kind: 'key-not-valid' };
  return row.invoice === null ? { kind: 'none' } : { kind: 'found', invoice: row.invoice };
}

/** The limit is low, so that reads are batched and leave most of the pool to creations. These values weren't tuned by measurement. */
const MAX_UNDER_WAY = 2;
const MAX_TOGETHER = 100;

type InvoiceQuestion = { keyId: string; id: string };

/**
 * Like `findInvoice`, but concurrent questions share a statement. With 64 concurrent requests, both this process and PostgreSQL need only a
 * third of the time. Each answer is as fresh as that of a separate statement, because the shared statement starts after the question has
 * arrived.
 */
export function createInvoiceReader(db: Database, now: () => UnixMs): Ask<InvoiceQuestion, FoundInvoice> {
  return coalesce({
    maxUnderWay: MAX_UNDER_WAY,
    maxTogether: MAX_TOGETHER,
    answer: async (questions) => {
      const [only] = questions;
      if (questions.length === 1 && only !== undefined) return [await findInvoice(db, only.keyId, only.id, now())];
      return findInvoices(db, questions, now());
    },
  });
}

const columns = { number: 'int4', isKeyValid: 'bool', ...maybeProjected } as const;

// The lateral subquery makes PostgreSQL find each invoice by its primary key, however small it thinks the table is.
const selectMany = statement(
  'invoice-select-many',
  columns,
  `select ${listColumns(columns, 'i.', { number: 'asked.number::int4', isKeyValid: 'k.id is not null' })}
   from unnest($1::uuid[], $2::uuid[]) with ordinality as asked (key_id, id, number)
   left join api_keys k on k.id = asked.key_id and k.revoked_at is null and (k.expires_at is null or k.expires_at > $3)
   left join lateral (
     select * from invoices
     where project_id = k.project_id and id = asked.id limit 1) i on true`,
);

/** Returns the results of `findInvoice` for many questions, in order. */
async function findInvoices(db: Database, questions: InvoiceQuestion[], now: UnixMs): Promise<FoundInvoice[]> {
  const [keyIds, ids] = [questions.map(({ keyId }) => keyId), questions.map(({ id }) => id)];
  const answers = new Array<FoundInvoice>(questions.length);
  for (const row of await db.run(selectMany, [keyIds, ids, new Date(now)])) {
    answers[row.number - 1] = toFound(row.isKeyValid ? row : undefined);
  }
  return answers;
}

/** `after` is a UUID; the page contains the ids after it, in creation order. `window` is the maximum number of invoices to scan. */
type InvoicePageQuestion = {
  keyId: string;
  after: string;
  status: InvoiceStatus | null;
  limit: number;
  window: number;
};

/** `looked` is the number of invoices scanned, and `last` is the id of the last one, or `null` if there were none. */
type InvoicePage = { invoices: ProjectedInvoice[]; looked: number; last: string | null };

// No index covers the status, because it would slow down every creation. Instead, the next invoices are scanned, up to a limit.
/** Returns invoices of the key's project, oldest first, or `null` if the key is invalid. */
export const findInvoicePage = answerOf(
  'invoice-page',
  { looked: count, last: 'uuid?', ...maybeProjected },
  `with valid as (
     select project_id from api_keys where id = $1 and revoked_at is null and (expires_at is null or expires_at > $6)),
   seen as materialized (
     select i.id, i.status from valid cross join lateral (
       select id, status from invoices where project_id = valid.project_id and id > $2 order by id limit $5) i),
   chosen as (select id from seen where $3::text is null or status = $3 order by id limit $4)
   select (select count(*) from seen) as looked, (select id from seen order by id desc limit 1) as last,
     ${listColumns(maybeProjected, 'i.')}
   from valid left join chosen on true left join invoices i on i.id = chosen.id
   order by i.id`,
  ({ keyId, after, status, limit, window }: InvoicePageQuestion, now: UnixMs) => [
    ...[keyId, after, status, limit, window],
    new Date(now),
  ],
  (rows): InvoicePage | null => {
    const [first] = rows;
    if (first === undefined) return null;
    const { looked, last } = first;
    return { invoices: rows.flatMap(({ invoice }) => invoice ?? []), looked, last };
  },
);

type Withdrawal = { id: string; projectId: string; network: Network; at: UnixMs };

/** Withdraws an invoice, unless it is paid or was already withdrawn. */
export const withdrawInvoice = commandOf(
  'invoice-withdraw',
  `update invoices set withdrawn_at = $3, withdrawn_mac = $4
   where project_id = $1 and id = $2 and withdrawn_at is null and status <> 'PAID'`,
  ({ id, projectId, network, at }: Withdrawal) => [
    ...[projectId, id, new Date(at)],
    sealOf(SEALED_WITHDRAWN, { id, projectId, network, withdrawnAt: at }),
  ],
);
