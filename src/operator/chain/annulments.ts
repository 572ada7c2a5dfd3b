import type { InvoiceStatus } from '../../domain/invoice.ts';
import type { Network } from '../../domain/network.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import type { Sql } from '../../store/db/database.ts';
import { hexSeal } from '../../store/db/seal.ts';
import { SEALED_ANNULMENT } from '../../store/db/sealed-tables.ts';
import { maybe, type Row, statement, text } from '../../store/db/statement.ts';
import { type Annulment, outgoingAnnulment, outgoingStands, stands } from '../../store/ledger/standing.ts';
import { type LedgerTransfer, TRANSFER_KEY, type TransferKey } from './chain-ledger.ts';

const recorded = statement(
  'annulment-recorded',
  {
    ...TRANSFER_KEY,
    correction: 'int4',
    incoming: maybe({
      ...{ id: 'uuid', projectId: 'uuid', kind: text<'matched' | 'duplicate' | 'unmatched'>() },
      /** The invoice that it paid, or, of a duplicate, that was paid before. */
      invoice: maybe({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() }),
    }),
  },
  `select asked.side, asked.tx_id, asked.log_index, t.correction, t.id as incoming_id, t.project_id as incoming_project_id,
     t.kind as incoming_kind, i.id as incoming_invoice_id, i.external_id as incoming_invoice_external_id,
     i.status as incoming_invoice_status
   from unnest($2::text[], $3::text[], $4::int8[]) with ordinality as given (side, tx_id, log_index, place)
   cross join lateral (select given.side, given.tx_id, given.log_index::int4 as log_index) asked
   cross join lateral (
     select t.correction, t.id, t.project_id, t.kind, t.invoice_id from transfers t
     where asked.side = 'in' and t.network = $1 and t.tx_id = decode(asked.tx_id, 'hex') and t.log_index = asked.log_index
       and ${stands('t')}
     union all
     select o.correction, null, null, null, null from outgoing_transfers o
     where asked.side = 'out' and o.network = $1 and o.tx_id = decode(asked.tx_id, 'hex') and o.log_index = asked.log_index
       and ${outgoingStands('o')}) t
   left join invoices i on i.project_id = t.project_id and i.id = t.invoice_id
   order by given.place`,
);

/** A transfer as it stands in the ledger, with the facts that only the ledger has. `incoming` is `null` for an outgoing one. */
export type Recorded = Row<typeof recorded.shape>;

/** Those of these transfers that stand in the ledger, in the order asked. */
export async function findRecorded(db: Sql, network: Network, transfers: readonly TransferKey[]): Promise<Recorded[]> {
  if (transfers.length === 0) return [];
  return db.run(recorded, [
    network,
    transfers.map(({ side }) => side),
    transfers.map(({ txId }) => txId),
    transfers.map(({ logIndex }) => BigInt(logIndex)),
  ]);
}

const insertIncoming = statement(
  'annulment-insert',
  {},
  `insert into transfer_annulments (transfer_id, project_id, invoice_id, denied_by, annulled_at, annulled_by, reason, mac)
   select (t->>'transferId')::uuid, (t->>'projectId')::uuid, (t->>'invoiceId')::uuid, decode(t->>'deniedBy', 'hex'), $2, $3, $4,
     decode(t->>'mac', 'hex')
   from jsonb_array_elements($1::text::jsonb) t`,
);

const insertOutgoing = statement(
  'annulment-insert-outgoing',
  {},
  `insert into outgoing_annulments (network, tx_id, log_index, correction, denied_by, annulled_at, annulled_by, reason)
   select $2, decode(t->>'txId', 'hex'), (t->>'logIndex')::int4, (t->>'correction')::int4, decode(t->>'deniedBy', 'hex'), $3,
     $4, $5
   from jsonb_array_elements($1::text::jsonb) t`,
);

/** Takes transfers back. A second annulment of one is refused by constraint, and so is one that hides which invoice was paid. */
export async function insertAnnulments(
  tx: Sql,
  network: Network,
  denied: readonly (Recorded & { deniedBy: string })[],
  { at, by, reason }: Omit<Annulment, 'deniedBy'>,
): Promise<void> {
  const sealer = await tx.sealer();
  const incoming = denied.flatMap(({ incoming: found, deniedBy }) => {
    if (found === null) return [];
    const { id, projectId, kind, invoice } = found;
    const invoiceId = kind === 'matched' ? (invoice?.id ?? null) : null;
    const row = { transferId: id, projectId, invoiceId, deniedBy, annulledAt: at, annulledBy: by, reason };
    return [{ ...row, mac: hexSeal(sealer, SEALED_ANNULMENT, row) }];
  });
  const outgoing = denied.flatMap(({ incoming: found, ...rest }) => (found === null ? [rest] : []));
  if (incoming.length > 0) await tx.run(insertIncoming, [JSON.stringify(incoming), new Date(at), by, reason]);
  if (outgoing.length > 0) await tx.run(insertOutgoing, [JSON.stringify(outgoing), network, new Date(at), by, reason]);
}

const takenBack = statement(
  'annulment-taken-back',
  { ...TRANSFER_KEY, blockId: 'text', address: 'address', amountMicro: 'numeric' },
  `select t.side, encode(t.tx_id, 'hex') as tx_id, t.log_index, encode(t.block_id, 'hex') as block_id, ${addressColumn('a')} as address, t.amount_micro
   from (
     select 'in' as side, t.tx_id, t.log_index, t.block_id, t.address_id, t.amount_micro
     from transfers t join transfer_annulments n on n.transfer_id = t.id
     where t.network = $1 and t.tx_id in (select decode(tx_id, 'hex') from unnest($2::text[]) as asked (tx_id))
     union all
     select 'out', o.tx_id, o.log_index, o.block_id, o.address_id, o.amount_micro
     from outgoing_transfers o join outgoing_annulments n on ${outgoingAnnulment('o')}
     where o.network = $1 and o.tx_id in (select decode(tx_id, 'hex') from unnest($2::text[]) as asked (tx_id))) t
   join addresses a on a.id = t.address_id`,
);

/** Finds the transfers of these transactions that were taken back. */
export async function findTakenBack(
  db: Sql,
  network: Network,
  txIds: readonly string[],
): Promise<Omit<LedgerTransfer, 'blockNumber'>[]> {
  return txIds.length === 0 ? [] : db.run(takenBack, [network, txIds]);
}
