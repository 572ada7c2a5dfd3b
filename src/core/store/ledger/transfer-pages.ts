import type { InvoiceStatus, Match } from '../../domain/invoice.ts';
import type { MicroUsdt } from '../../domain/money.ts';
import type { UnixMs } from '../../domain/time.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { sealColumn } from '../db/seal.ts';
import { SEALED_TRANSFER } from '../db/sealed-tables.ts';
import { count, hex, listColumns, maybe, micro, type Row, sealedBefore, statement, text } from '../db/statement.ts';
import { notAnnulled } from './annulments.ts';
import { joinRefund, REFUND_COLUMNS, type Refund, refundShape, soundRefund } from './transfer-refunds.ts';

export type TransferKind = Match;

const listed = {
  transfer: maybe({
    id: 'uuid',
    kind: text<TransferKind>(),
    txId: hex(),
    logIndex: 'int4',
    blockNumber: count,
    blockTime: 'timestamptz',
    from: 'text',
    to: 'address',
    amountMicro: micro<MicroUsdt>(),
    seal: sealedBefore(SEALED_TRANSFER),
  }),
  /** The invoice that the transfer pays or, for a duplicate, the invoice that was already paid. */
  invoice: maybe({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() }),
  ...refundShape,
} as const;

export type ListedTransfer = Omit<NonNullable<Row<typeof listed>['transfer']>, 'seal'> &
  Pick<Row<typeof listed>, 'invoice'> & { refund: Refund | null };

/** `after` is a UUID; the page contains the ids after it, in the order in which the transfers were recorded. */
type TransferPageQuestion = { keyId: string; after: string; kinds: readonly TransferKind[]; limit: number };

// The page is selected first, so that an index determines the order.
const pageText = (only: string) => `select ${listColumns(listed, '', {
  transfer: {
    ...{
      id: 't.id',
      kind: 't.kind',
      txId: `encode(t.tx_id, 'hex')`,
      logIndex: 't.log_index',
      blockNumber: 't.block_number',
    },
    ...{
      blockTime: 't.block_time',
      from: 't.from_address',
      to: addressColumn('a'),
      amountMicro: 't.amount_micro',
      seal: sealColumn(SEALED_TRANSFER, 't.'),
    },
  },
  invoice: 'i.',
  ...REFUND_COLUMNS,
})}
   from api_keys k
   left join lateral (
     select * from transfers u
     where u.project_id = k.project_id and u.id > $2 and u.kind = any($3::text[]) and ${only} and ${notAnnulled('u')}
     order by u.id limit $4) t on true
   left join addresses a on a.id = t.address_id
   left join lateral (
     select id, external_id, status from invoices where project_id = t.project_id and id = t.invoice_id limit 1) i on true
   ${joinRefund('t')}
   where k.id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > $5)
   order by t.id`;

const unsettledPage = statement('transfer-page-unsettled', listed, pageText("u.kind <> 'matched'"));
const page = statement('transfer-page', listed, pageText('true'));

/** Returns transfers to the addresses of the key's project, oldest first, except annulled ones. Returns `null` if the key is invalid. */
export async function findTransferPage(
  db: Sql,
  question: TransferPageQuestion,
  now: UnixMs,
): Promise<ListedTransfer[] | null> {
  const { keyId, after, kinds, limit } = question;
  // PostgreSQL can use the index of transfers that pay nothing only if the condition is in the statement's text.
  const select = kinds.includes('matched') ? page : unsettledPage;
  const rows = await db.run(select, [keyId, after, kinds, limit, new Date(now)]);
  if (rows.length === 0) return null;
  return rows.flatMap(({ transfer, invoice, refund }) => {
    return transfer === null ? [] : [{ ...transfer, invoice, refund: soundRefund(refund) }];
  });
}
