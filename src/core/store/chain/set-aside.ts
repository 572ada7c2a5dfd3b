import type { SolidBlock } from '../../domain/chain-block.ts';
import type { Network } from '../../domain/network.ts';
import { printableText } from '../../domain/text.ts';
import type { Sql } from '../db/database.ts';
import { commandOf, rowsOf } from '../db/rows-of.ts';
import { hexSeal, sealColumn } from '../db/seal.ts';
import { SEALED_SET_ASIDE } from '../db/sealed-tables.ts';
import { count, isAsSealed, jsonRows, listColumns, maybeHex, type Row, statement } from '../db/statement.ts';
import type { InvoiceKey } from './cursor.ts';
import type { PlacedTransfer } from './incoming.ts';

/** A block with one transfer that the ledger can't record yet, or an invoice whose status must be determined again. */
export type SetAside =
  | { kind: 'transfer'; block: SolidBlock; reason: string }
  | { kind: 'invoice'; invoice: InvoiceKey; reason: string };

const idOf = (...parts: readonly (string | number)[]) => parts.join(' ');
const MAX_REASON = 2000;
const reasonToStore = (reason: string) => printableText(reason.slice(0, MAX_REASON));
/** A payer gains nothing by sending the same amount more often than this while a row is damaged. */
const MAX_EQUAL = 1000;
/** The longest pause between two retries. A row with a later time was written by someone else. */
const LONGEST = "interval '5 minutes'";

const inserted = {
  id: 'text',
  content: 'text',
  account: maybeHex,
  amountMicro: 'numeric?',
  reason: 'text',
} as const;
const rows = jsonRows({ ...inserted, mac: maybeHex });

const insert = commandOf(
  'set-aside-insert',
  `insert into set_aside (network, ${rows.columns}) select $1, ${rows.columns} from ${rows.table('$2')} on conflict do nothing`,
  (network: Network, added: Parameters<typeof rows.bind>[0]) => [network, rows.bind(added)],
);

/** Stores set-aside items in the transaction that advances the cursor. From then on, they aren't recorded anywhere else. */
export async function insertSetAside(tx: Sql, network: Network, added: readonly SetAside[]): Promise<void> {
  if (added.length === 0) return;
  const sealer = await tx.sealer();
  const described = added.map((one) => {
    const row = { ...describe(network, one), reason: reasonToStore(one.reason) };
    return { ...row, mac: hexSeal(sealer, SEALED_SET_ASIDE, { ...row, network }) };
  });
  await insert(tx, network, described);
}

function describe(network: Network, one: SetAside) {
  if (one.kind === 'invoice') {
    const { projectId, invoiceId } = one.invoice;
    return {
      id: idOf(network, 'invoice', invoiceId),
      content: JSON.stringify({ projectId }),
      account: null,
      amountMicro: null,
    };
  }
  const [transfer] = one.block.transfers;
  if (transfer === undefined) throw new Error('the set-aside block has no transfer');
  const { txId, logIndex, to: account, amount: amountMicro } = transfer;
  const transfers = [{ ...transfer, amount: String(amountMicro) }];
  return {
    id: idOf(network, 'transfer', txId, logIndex),
    content: JSON.stringify({ ...one.block, transfers }),
    account,
    amountMicro,
  };
}

const waiting = {
  id: 'text',
  content: 'text',
  reason: 'text',
  tries: 'int4',
  isDue: 'bool',
  seal: isAsSealed(SEALED_SET_ASIDE),
} as const;
export type WaitingRow = Row<typeof waiting>;

/** Returns a network's set-aside items, longest overdue first. */
export const findSetAside = rowsOf(
  'set-aside-find',
  waiting,
  `select ${listColumns(waiting, 's.', {
    isDue: `(s.due_at <= now() or s.due_at > now() + ${LONGEST})`,
    seal: sealColumn(SEALED_SET_ASIDE, 's.'),
  })}
   from set_aside s where s.network = $1 order by s.due_at, s.id limit $2`,
  (network: Network, limit: number) => [network, limit],
);

/** Returns the other set-aside transfers of the same amount to the same address. Any of them may have been written by someone else. */
export const findEqualSetAside = rowsOf(
  'set-aside-equal',
  waiting,
  `select ${listColumns(waiting, 's.', { isDue: 'true', seal: sealColumn(SEALED_SET_ASIDE, 's.') })}
   from set_aside s join set_aside one on one.id = $1 and s.network = one.network and s.account = one.account
     and s.amount_micro = one.amount_micro and s.id <> one.id
   order by s.id limit ${MAX_EQUAL}`,
  (id: string) => [id],
);

/** Decodes a row. Returns `null` if Quittance didn't write it. */
export function readSetAside({ id, content, reason }: Pick<WaitingRow, 'id' | 'content' | 'reason'>): SetAside | null {
  const [, kind, invoiceId = ''] = id.split(' ');
  const told = JSON.parse(content);
  if (kind === 'invoice') return { kind, invoice: { projectId: told.projectId, invoiceId }, reason };
  const [transfer] = told.transfers ?? [];
  if (kind !== 'transfer' || transfer === undefined) return null;
  const block = { ...told, transfers: [{ ...transfer, amount: BigInt(transfer.amount) }] } as SolidBlock;
  return { kind, block, reason };
}

/** Records another failure. The pause before the next retry doubles. */
export const postponeSetAside = commandOf(
  'set-aside-postpone',
  `update set_aside set reason = $2, tries = least(tries + 1, 1000000),
     due_at = now() + least(interval '5 seconds' * power(2, least(tries, 10)), ${LONGEST})
   where id = $1`,
  (id: string, reason: string) => [id, reasonToStore(reason)],
);

/** Deletes an item that has been recorded or no longer involves our addresses. */
export const forgetSetAside = commandOf('set-aside-forget', 'select from forget_set_aside($1)', (id: string) => [id]);

const among = statement(
  'set-aside-among',
  { index: count },
  `select t.index - 1 as index from unnest($2::text[], $3::numeric[], $4::text[]) with ordinality as t(account, amount, id, index)
   where exists (
     select from set_aside s
     where s.network = $1 and s.account = decode(t.account, 'hex') and s.amount_micro = t.amount and s.id <> t.id)`,
);

/** Returns the positions of transfers that already have an equal transfer set aside, because the earlier one must be recorded first. */
export async function findBehindSetAside(
  tx: Sql,
  network: Network,
  transfers: readonly Pick<PlacedTransfer, 'txId' | 'logIndex' | 'to' | 'amount'>[],
): Promise<Set<number>> {
  if (transfers.length === 0) return new Set();
  const found = await tx.run(among, [
    network,
    transfers.map(({ to }) => to),
    transfers.map(({ amount }) => amount),
    transfers.map(({ txId, logIndex }) => idOf(network, 'transfer', txId, logIndex)),
  ]);
  return new Set(found.map(({ index }) => index));
}
