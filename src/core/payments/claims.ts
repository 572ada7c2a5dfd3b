import { describeTransfer, newEvent } from '../domain/event.ts';
import type { InvoiceStatus } from '../domain/invoice.ts';
import { CAUSES, type Cause, describeLikeliest, nameInvoice } from '../domain/mismatch.ts';
import type { MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import { toIso, type UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import { lockCursor } from '../store/chain/cursor.ts';
import { addressColumn } from '../store/db/address-column.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf, commandOf, rowsOf } from '../store/db/rows-of.ts';
import { sealColumn, sealOf } from '../store/db/seal.ts';
import { SEALED_CLAIM, SEALED_INVOICE, SEALED_TRANSFER } from '../store/db/sealed-tables.ts';
import { count, group, hex, isAsSealed, listColumns, maybe, micro, type Row, text } from '../store/db/statement.ts';
import { notAnnulled, payableAfter } from '../store/ledger/annulments.ts';
import { insertEvents } from '../store/outbox/events.ts';
import { type Compared, compareTransfers } from './mismatch/diagnose-transfers.ts';
import { guardWhileLeading, type Leading } from './watching.ts';

// A claim is created when an invoice's payer looks up an unmatched transfer to the invoice's address. It doesn't credit anything. The page
// says that the money arrived, the shop gets the event `transfer.claimed`, and operators see the transfer at the top of the unmatched
// transfers. Anyone who has an invoice's link can make a claim, so an operator must check the sender and the amount before acting on it.

/** Several claims are allowed, so that the first one doesn't block the others. More than this many wouldn't help an operator. */
const MAX_OF_TRANSFER = 5;

const columns = {
  invoice: group({ id: 'uuid', projectId: 'uuid', externalId: 'text', status: text<InvoiceStatus>() }),
  isInvoiceSound: isAsSealed(SEALED_INVOICE, { isOfOther: true }),
  txId: hex(),
  isOld: 'bool',
  /** `null` if the transaction has no transfer that can be claimed. */
  transfer: maybe({
    id: 'uuid',
    txId: hex(),
    logIndex: 'int4',
    blockNumber: count,
    blockTime: 'timestamptz',
    from: 'text',
    to: 'address',
    amountMicro: micro<MicroUsdt>(),
    otherClaims: count,
    isSound: isAsSealed(SEALED_TRANSFER),
  }),
} as const;
type Request = Row<typeof columns>;
type Claimable = NonNullable<Request['transfer']>;

const PAGE = 100;

/**
 * Returns the requests that can be judged, either because the transaction's transfers are recorded and the shop was notified, or because a
 * day has passed. If there are several transfers, this uses the one that the lookup shows, which is nearest to the payable amount. If
 * `only` is given, returns just that request.
 */
const findRequests = rowsOf(
  'claim-requests',
  columns,
  `select ${listColumns(columns, 'r.', {
    invoice: 'i.',
    isInvoiceSound: sealColumn(SEALED_INVOICE, 'i.'),
    isOld: 'r.is_old',
    transfer: 't.',
  })}
   from (
     select *, requested_at < now() - interval '1 day' as is_old from claim_requests
     where network = $1 and ($2::uuid is null or (invoice_id = $2 and tx_id = decode($3, 'hex')))) r
   join invoices i on i.project_id = r.project_id and i.id = r.invoice_id
   left join lateral (
     select t.id, t.tx_id, t.log_index, t.block_number, t.block_time, t.from_address as "from", ${addressColumn('a')} as "to", t.amount_micro,
       (select count(*) from transfer_claims c where c.transfer_id = t.id and c.invoice_id <> i.id) as other_claims,
       ${sealColumn(SEALED_TRANSFER, 't.')} as is_sound
     from transfers t join addresses a on a.id = t.address_id
     where t.network = r.network and t.tx_id = r.tx_id and t.project_id = i.project_id and t.address_id = i.address_id
       and t.kind = 'unmatched' and t.block_time > ${payableAfter('i.')} and ${notAnnulled('t')}
       and not exists (select from transfer_resolutions d where d.transfer_id = t.id)
       and not exists (select from transfer_claims c where c.transfer_id = t.id and c.invoice_id = i.id)
     order by abs(t.amount_micro - i.payable_micro), t.id limit 1) t on true
   where r.is_old or (
     exists (select from transfers s where s.network = r.network and s.tx_id = r.tx_id and s.project_id = r.project_id)
     and not exists (
       select from transfers s join untold_transfers u on u.network = s.network and u.transfer_id = s.id
       where s.network = r.network and s.tx_id = r.tx_id))
   order by r.requested_at, r.invoice_id limit ${PAGE}`,
  (network: Network, only: { invoiceId: string; txId: string } | null) => [
    network,
    only?.invoiceId ?? null,
    only?.txId ?? null,
  ],
);

const forgetRequest = commandOf(
  'claim-request-forget',
  'select from forget_claim_requests($1, $2, $3)',
  (network: Network, { invoice, txId }: Request) => [network, [invoice.id], [txId]],
);

type NewClaim = { transferId: string; invoiceId: string; projectId: string; eventId: string; claimedAt: UnixMs };

const insertClaim = commandOf(
  'claim-insert',
  `insert into transfer_claims (transfer_id, project_id, invoice_id, event_id, claimed_at, mac) values ($1, $2, $3, $4, $5, $6)`,
  (claim: NewClaim) => [
    ...[claim.transferId, claim.projectId, claim.invoiceId, claim.eventId, new Date(claim.claimedAt)],
    sealOf(SEALED_CLAIM, claim),
  ],
);

/**
 * Whether an invoice's payer may claim a transfer. They may not if the transfer is more likely to pay another invoice, or not to be a
 * payment at all.
 */
function mayClaim({ causes: [likeliest], fit }: Compared, invoiceId: string): boolean {
  if (likeliest === undefined) return true;
  if (CAUSES[likeliest.code].isNoPayment) return false;
  const isOfOthers = likeliest.invoices.length > 0 && !likeliest.invoices.some(({ id }) => id === invoiceId);
  return !isOfOthers || fit?.rivals === 0 || likeliest.confidence === 'low';
}

type Claiming = Leading & { random(bytes: number): Uint8Array };

const MAX_PAUSE_MS = 2000;

/** Judges payers' claims while this process follows the network. Runs until it's stopped. */
export function startClaims(options: Claiming): Loop {
  const how = { name: 'claims', maxPauseMs: MAX_PAUSE_MS };
  return guardWhileLeading(options, how, async (shouldEnd, progress) => {
    const failures: unknown[] = [];
    for (const request of await findRequests(options.db, options.network, null)) {
      if (shouldEnd()) return;
      await judge(options, request).then(progress, (error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  });
}

/**
 * Records the claim and its event, or neither, and deletes the request. All of this happens in one transaction that holds the cursor's
 * lock, so the event is written exactly once, even after a crash or with two processes.
 */
async function judge({ db, network, now, random }: Claiming, request: Request): Promise<void> {
  const { invoice, txId } = request;
  const compared =
    request.isOld || request.transfer === null ? undefined : await compare(db, request.transfer, invoice);
  await db.transaction(async (tx) => {
    await lockCursor(tx, network);
    const [found] = await findRequests(tx, network, { invoiceId: invoice.id, txId });
    if (found === undefined) return;
    await forgetRequest(tx, network, found);
    const { transfer } = found;
    if (compared === undefined || transfer === null || transfer.id !== request.transfer?.id) return;
    if (!found.isInvoiceSound || !transfer.isSound || transfer.otherClaims >= MAX_OF_TRANSFER) return;
    if (!mayClaim(compared, invoice.id)) return;
    const claimedAt = now();
    const event = newEvent(draftOf(found.invoice, transfer, compared.causes, claimedAt), {
      timestamp: claimedAt,
      random,
    });
    await insertEvents(tx, network, [event], claimedAt);
    const { projectId } = invoice;
    await insertClaim(tx, { transferId: transfer.id, invoiceId: invoice.id, projectId, eventId: event.id, claimedAt });
  });
}

async function compare(db: Sql, { id }: Claimable, invoice: Request['invoice']): Promise<Compared | undefined> {
  return (await compareTransfers(db, [id], invoice)).get(id);
}

function draftOf(invoice: Request['invoice'], transfer: Claimable, causes: Cause[], claimedAt: UnixMs) {
  const { id: transferId, otherClaims, isSound: _, ...seen } = transfer;
  const claim = { invoice: nameInvoice(invoice), claimedAt: toIso(claimedAt), otherClaims };
  return {
    type: 'transfer.claimed',
    ...{ projectId: invoice.projectId, invoiceId: null, transferId, sequence: 1 },
    data: { ...describeTransfer({ ...seen, id: transferId, invoiceId: null }), ...describeLikeliest(causes), claim },
  } as const;
}

const claimed = {
  transferId: 'uuid',
  isSound: isAsSealed(SEALED_CLAIM),
  claimedAt: 'timestamptz',
  invoice: group({ id: 'uuid', externalId: 'text', status: text<InvoiceStatus>() }),
} as const;
export type Claim = Omit<Row<typeof claimed>, 'isSound'>;

/** Returns the claims on transfers (given by UUID), oldest first, at most six per transfer. A transfer without claims has no entry. */
export const findClaims = answerOf(
  'claims-of-transfers',
  claimed,
  `select ${listColumns(claimed, 'c.', { isSound: sealColumn(SEALED_CLAIM, 'c.'), invoice: 'i.' })}
   from transfer_claims c join invoices i on i.project_id = c.project_id and i.id = c.invoice_id
   where c.transfer_id = any($1::uuid[]) order by c.claimed_at, c.invoice_id`,
  (transferIds: readonly string[]) => [transferIds],
  (rows) => {
    const found = new Map<string, Claim[]>();
    for (const { isSound, ...claim } of rows) {
      if (isSound) found.set(claim.transferId, [...(found.get(claim.transferId) ?? []), claim]);
    }
    return found;
  },
);
