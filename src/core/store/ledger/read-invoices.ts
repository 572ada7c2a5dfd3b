import type { UnixMs } from '../../domain/time.ts';
import { type Ask, coalesce } from '../../runtime/concurrency.ts';
import type { Database } from '../db/database.ts';
import { listColumns, statement } from '../db/statement.ts';
import { type FoundInvoice, findInvoice, maybeProjected, toFound } from './invoices.ts';

/** The limit is low, so that reads are batched and leave most of the pool to creations. These values weren't tuned by measurement. */
const MAX_UNDER_WAY = 2;
const MAX_TOGETHER = 100;

export type InvoiceQuestion = { keyId: string; id: string };

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
