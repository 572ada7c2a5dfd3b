import { accountToAddress } from '@quittance/tron/address';
import { encodeId } from '../domain/ids.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Loop } from '../runtime/loop.ts';
import { reasonOf } from '../runtime/reason-of.ts';
import { settleAlarms } from '../store/chain/alarms.ts';
import { findDetected, lockCursor } from '../store/chain/cursor.ts';
import {
  findEqualSetAside,
  findSetAside,
  forgetSetAside,
  postponeSetAside,
  readSetAside,
  type SetAside,
  type WaitingRow,
} from '../store/chain/set-aside.ts';
import type { Sql } from '../store/db/database.ts';
import type { HeldBack } from './expire-invoices.ts';
import { findChangeable, recordChanges } from './record-changes.ts';
import { BEHIND, recordTransfers } from './record-transfers.ts';
import { guardWhileLeading, isOfRow, type Leading, type Recording, whileLeading } from './watching.ts';

type Settling = Leading & Recording & { held: HeldBack };

/** The longest time until an alarm is raised for a new entry. */
const PAUSE_MS = 2000;
const PAGE = 500;
/** A person can handle this many alarms. If there are more, one alarm reports their number. */
const MAX_NAMED = 20;
const KIND = 'set-aside';
const MAX_SUBJECT = 200;

/**
 * Records each entry that was set aside once its row is repaired, and keeps an alarm open until then. Runs until stopped, while this
 * process follows the network.
 */
export function startSettling(options: Settling): Loop {
  const { network, isLeader } = options;
  const settling = { ...options, db: whileLeading(options.db, network, isLeader) };
  const how = { name: 'list of set-aside work', pauseMs: PAUSE_MS, maxPauseMs: PAUSE_MS };
  return guardWhileLeading(options, how, async (shouldEnd) => {
    const told = new Map<string, string>();
    for (const row of await findSetAside(settling.db, network, PAGE)) {
      if (shouldEnd()) return;
      const reason = await settleOne(settling, row);
      if (reason !== null) told.set(subjectOf(row), describe(row, reason));
    }
    for (const { invoiceId, reason } of options.held.list())
      told.set(encodeId('inv', invoiceId), `an order cannot expire until this is repaired: ${reason}. ${REST}`);
    await keepAlarms(settling, told);
  });
}

/** Returns why the entry still has to wait, or `null` if it's settled. */
async function settleOne(settling: Settling, row: WaitingRow): Promise<string | null> {
  const { db } = settling;
  if (!row.isDue) return row.reason;
  try {
    if (!row.seal) throw new Error('its entry was changed directly in the database');
    const one = readSetAside(row);
    if (one === null) throw new Error('its entry has an unknown format');
    await db.transaction(async (tx) => {
      if (one.kind === 'transfer' && (await findEqualSetAside(tx, row.id)).some((equal) => isBefore(equal, one)))
        throw new Error(BEHIND);
      await settle(settling, tx, one);
      await forgetSetAside(tx, row.id);
    });
    return null;
  } catch (error) {
    if (!isOfRow(error)) throw error;
    const reason = reasonOf(error);
    await postponeSetAside(db, row.id, reason);
    return reason;
  }
}

/**
 * Whether a waiting row is a transfer that is earlier in the chain. Two transfers in one block would pay the same order at the same time,
 * so either may be first.
 */
function isBefore(row: WaitingRow, { block }: Extract<SetAside, { kind: 'transfer' }>): boolean {
  const other = row.seal ? readSetAside(row) : null;
  return other?.kind === 'transfer' && other.block.number < block.number;
}

async function settle(settling: Settling, tx: Sql, one: SetAside): Promise<void> {
  const { network } = settling;
  const cursor = await lockCursor(tx, network);
  if (cursor === null) throw new Error(`network ${network} has no cursor`);
  if (one.kind === 'transfer') {
    const { aside } = await recordTransfers(settling, tx, [one.block], cursor.head.number, { mayOvertake: true });
    const [again] = aside;
    if (again !== undefined) throw new Error(again.reason);
    return;
  }
  const [invoice] = await findChangeable(tx, network, [one.invoice]);
  if (invoice === undefined || (await findDetected(tx, network, [invoice.id])).has(invoice.id)) return;
  const change = { kind: 'orphaned', clock: cursor.solid.time } as const;
  await recordChanges(settling, tx, [{ invoice, change, transaction: null, transferId: null }], cursor.head.number);
}

const REST = 'Everything else keeps working. See "set-aside" in docs/reference/alarms.md';

/** Returns an invoice's public id. A transfer is identified by its transaction id and log index instead. */
function subjectOf({ id }: WaitingRow): string {
  const [, kind, ...rest] = id.split(' ');
  const [invoiceId = ''] = rest;
  return (kind === 'invoice' ? encodeId('inv', invoiceId) : rest.join(' ')).slice(0, MAX_SUBJECT);
}

function describe(row: WaitingRow, reason: string): string {
  const one = row.seal ? readSetAside(row) : null;
  if (one?.kind !== 'transfer')
    return `the status of an order cannot change until this is repaired: ${reason}. ${REST}`;
  const { number, transfers } = one.block;
  const [transfer] = transfers;
  const what =
    transfer === undefined
      ? ''
      : ` of ${formatAmount(transfer.amount as MicroUsdt)} USDT to ${accountToAddress(transfer.to)} in block ${number}`;
  return `a payment${what} is set aside, and will be recorded when this is repaired: ${reason}. ${REST}`;
}

async function keepAlarms({ db, network, log }: Settling, told: ReadonlyMap<string, string>): Promise<void> {
  const named = [...told].slice(0, MAX_NAMED);
  if (told.size > MAX_NAMED)
    named.push([
      '',
      `${told.size} payments and orders are set aside until their rows are repaired; the first ${MAX_NAMED} have their own alarms. ${REST}`,
    ]);
  const found = named.map(([subject, detail]) => ({ network, subject, detail }));
  await settleAlarms({ db, log }, KIND, found, { networks: [network] });
}
