import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js';
import { readSent, wholeTransaction } from '../wire/hidden-fields.ts';
import { type PendingTransaction, readPending } from './admission.ts';
import type { Block } from './block.ts';
import type { Chain } from './chain.ts';
import type { LedgerRecord } from './ledger-storage.ts';

interface Moving {
  readonly chain: Chain;
  readonly pending: Map<string, PendingTransaction>;
}

/** Does again what the log says was done. */
export function replay(record: LedgerRecord, { chain, pending }: Moving): void {
  switch (record.kind) {
    case 'submitted': {
      const transaction = readSent(hexToBytes(record.transaction));
      const again = transaction === null ? null : readPending(transaction);
      if (again === null)
        throw new Error('devnet log holds a transaction that cannot be read: the directory is damaged');
      if (chain.heightOf(again.id) === null) pending.set(again.id, again);
      return;
    }
    case 'fork':
      orphan(record, { chain, pending });
      return;
    case 'producers':
      chain.setSchedule(record.schedule);
      return;
    case 'block':
      chain.add(record.block, record.change, record.position);
      for (const { id } of record.block.transactions) pending.delete(id);
  }
}

/** A transaction as it was sent. */
export function transactionHex({ rawData, signatures, hidden }: PendingTransaction): string {
  return bytesToHex(wholeTransaction({ rawDataHex: bytesToHex(rawData), signatures, contractRet: null, hidden }));
}

/** Takes blocks away; their transactions wait again, before those that wait already, or are gone. */
export function orphan(
  { to, keepTransactions }: { to: number; keepTransactions: boolean },
  { chain, pending }: Moving,
): readonly Block[] {
  const orphaned = chain.orphanAbove(to);
  if (!keepTransactions) return orphaned;
  const later = [...pending];
  pending.clear();
  for (const { rawDataHex, signatures, hidden } of orphaned.flatMap((block) => block.transactions)) {
    const sent = readSent(wholeTransaction({ rawDataHex, signatures, contractRet: null, hidden }));
    const again = sent === null ? null : readPending(sent);
    if (again !== null) pending.set(again.id, again);
  }
  for (const [id, transaction] of later) pending.set(id, transaction);
  return orphaned;
}
