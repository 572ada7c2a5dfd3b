import type { SolidBlock } from '../../domain/chain-block.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say, type Text } from '../../domain/message.ts';
import { formatAmount, type MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import { recordTransfers, type TransferCounts } from '../../payments/record-transfers.ts';
import type { Recording } from '../../payments/watching.ts';
import { raiseAlarm } from '../../store/chain/alarms.ts';
import { markChecksDue } from '../../store/chain/balance-checks.ts';
import { lockCursor } from '../../store/chain/cursor.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { findRecorded, insertAnnulments, type Recorded } from './annulments.ts';
import type { LedgerTransfer } from './chain-ledger.ts';
import type { Range } from './read-range.ts';
import { concerns } from './record-rescanned.ts';

/** An alarm is kept as text, with the names of the face that caused it. */
export type Writing = { write(text: Text): string };

/** A transfer of the ledger that the chain denies, and the block by which it does. */
export type DeniedTransfer = { transfer: LedgerTransfer; recorded: Recorded; deniedBy: string };

/** The decision of an operator: the transfers to take back, and the blocks of the chain that hold the missing ones. */
export type Repair = {
  denied: readonly DeniedTransfer[];
  blocks: readonly SolidBlock[];
  range: Range;
  actor: Actor;
  reason: string;
};

/**
 * Takes back the transfers that the chain denies, and records the missing transfers of the blocks, as a rescan does. All of it
 * happens in one transaction that holds the cursor's lock. An invoice that a denied transfer had made `PAID` stays so, and an
 * alarm says it. Transfers that somebody else took back meanwhile are left alone.
 */
export function recordRepaired(
  recording: Recording & Writing,
  { denied, blocks, range, actor, reason }: Repair,
): Promise<{ takenBack: number; added: TransferCounts }> {
  const { db, network, now } = recording;
  return db.transaction(async (tx) => {
    const cursor = await lockCursor(tx, network);
    if (cursor === null) throw new Error(`network ${network} has no cursor`);
    const at = now();
    const by = actor.name;
    const standing = await stillStanding(tx, network, denied);
    const annulled = standing.map(({ recorded, deniedBy }) => ({ ...recorded, deniedBy }));
    await insertAnnulments(tx, network, annulled, { at, by, reason });
    const { counts } = await recordTransfers(recording, tx, blocks, cursor.head.number, { concerns, isAgain: true });
    for (const each of standing) await alarmOf(recording, tx, each, { by, reason });
    const subjects = standing.map(({ transfer: { side, txId, logIndex } }) => `${side} ${txId} ${logIndex}`);
    const detail = { ...range, reason, takenBack: subjects, added: counts };
    await markChecksDue(tx, network);
    await recordActions(tx, actor, at, [{ projectId: null, action: 'chain.repaired', subject: network, detail }]);
    return { takenBack: standing.length, added: counts };
  });
}

async function stillStanding(tx: Sql, network: Network, denied: readonly DeniedTransfer[]): Promise<DeniedTransfer[]> {
  const transfers = denied.map(({ transfer }) => transfer);
  const found = await findRecorded(tx, network, transfers);
  const standing = new Set(found.map(keyOf));
  return denied.filter(({ recorded }) => standing.has(keyOf(recorded)));
}

function keyOf({ side, txId, logIndex, correction }: Recorded): string {
  return `${side} ${txId} ${logIndex} ${correction}`;
}

/** Nothing else tells of an invoice that is `PAID` by what never was. */
async function alarmOf(
  { network, now, random, write }: Recording & Writing,
  tx: Sql,
  { transfer, recorded }: DeniedTransfer,
  { by, reason }: { by: string; reason: string },
): Promise<void> {
  const { kind, invoice } = recorded.incoming ?? { kind: null, invoice: null };
  if (kind !== 'matched' || invoice === null) return;
  const invoiceId = encodeId('inv', invoice.id);
  const { txId, logIndex, blockNumber, address, amountMicro } = transfer;
  const detail =
    `the chain denies the payment of ${invoiceId} (${invoice.externalId}): transfer ${txId} (${logIndex}) of ` +
    `${formatAmount(amountMicro as MicroUsdt)} USDT to ${address} was recorded in block ${blockNumber} and is not there. ${by} took it ` +
    `back: ${reason}. The invoice stays PAID, for PAID is never left: whoever ships for it was not paid by this. When your shop knows: ` +
    write(say`${{ command: 'chain acknowledge', input: { network, alarm: 'payment-denied', subject: invoiceId } }}`);
  await raiseAlarm(tx, network, { id: uuidV7(now(), random(10)), kind: 'payment-denied', subject: invoiceId, detail });
}
