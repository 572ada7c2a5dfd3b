import { AppError } from '../domain/errors.ts';
import { decodeId, encodeId } from '../domain/ids.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import { say } from '../domain/message.ts';
import type { Sql } from '../store/db/database.ts';
import { rowOf } from '../store/db/rows-of.ts';
import { type Row, text } from '../store/db/statement.ts';
import { clip } from './input/clip.ts';

export const namedInvoice = { id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() } as const;
/** An invoice as the desk names it. `id` is a UUID. */
export type NamedInvoice = Row<typeof namedInvoice>;

/** An invoice of the project by its id (UUID) or by its external id; the id comes first. */
export const findNamedInvoice = rowOf(
  'desk-invoice-select',
  namedInvoice,
  `select id, external_id, status from invoices
   where project_id = $1 and (id = $2 or external_id = $3) order by id = $2 desc limit 1`,
  (projectId: string, name: { id: string | null; externalId: string }) => [projectId, name.id, name.externalId],
);

/** The UUID of the invoice of a project that has this id (`inv_…`) or this order id. Errors: `NOT_FOUND`. */
export async function findInvoiceId(db: Sql, projectId: string, named: string): Promise<string> {
  // PostgreSQL has no text with this character, so no order id has it.
  const name = named.includes('\u0000') ? null : { id: decodeId('inv', named), externalId: named };
  const found = name && (await findNamedInvoice(db, projectId, name));
  if (found !== null) return found.id;
  throw new AppError(
    'NOT_FOUND',
    say`the project ${encodeId('prj', projectId)} has no invoice ${clip(named)}. To find one by part of its order id, its amount, its transaction or its link, run "${{ command: 'explain', args: ['ORDER'] }}"`,
  );
}
