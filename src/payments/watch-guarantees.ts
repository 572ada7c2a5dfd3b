import { randomUUID } from 'node:crypto';
import type { UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import { raiseAlarm } from '../store/chain/alarms.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { pendingMigrations } from '../store/db/migrate.ts';
import { findSchemaChanges, nameChange, type SchemaChange, waitBriefly } from '../store/db/schema-changes.ts';
import { findDamagedAddresses } from '../store/ledger/addresses.ts';
import { accountToAddress } from '../tron/address.ts';
import { closeOthers } from './close-alarms.ts';
import { notifyDamagedAddress } from './notify-damaged-address.ts';
import { type Leading, loopWhileLeading, whileLeading } from './watching.ts';

const CHECK_MS = 3_600_000;
/** While something is wrong an operator is at work on it, and wants to see that it is well again. */
const CHECK_WRONG_MS = 60_000;
/** A change of more than these is a change of everything; the rest is told when these are put right. */
const MAX_ALARMS = 20;
const MAX_SHOWN = 700;

/**
 * Compares the schema with the one of this release, and each address of a network with its account: at once, and then every hour, while
 * this process is the leader. Never ends by itself.
 */
export function startGuaranteeWatch(options: Leading): Loop {
  const { network, now, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  let looked: { at: UnixMs; pauseMs: number } | null = null;
  const look = async () => {
    const at = now();
    // A clock that was put back does not put this off.
    if (looked !== null && at >= looked.at && at - looked.at < looked.pauseMs) return;
    const isSchemaRight = await checkSchema({ ...options, db });
    const areAddressesRight = await checkAddresses({ ...options, db });
    looked = { at, pauseMs: isSchemaRight && areAddressesRight ? CHECK_MS : CHECK_WRONG_MS };
  };
  const onFollower = () => {
    looked = null;
  };
  return loopWhileLeading(options, { name: 'guarantees', onFollower }, look);
}

async function checkSchema({ db, network, log }: Leading): Promise<boolean> {
  const changes = await compareSchema(db);
  if (changes === null) return true;
  const reported = changes.slice(0, MAX_ALARMS);
  for (const change of reported) {
    const detail = describe(change);
    const alarm = { id: randomUUID(), kind: 'schema-changed', subject: change.name.slice(0, 200), detail } as const;
    if (await raiseAlarm(db, network, alarm)) log.error({ alarm: alarm.kind, subject: alarm.subject }, detail);
  }
  const subjects = new Set(reported.map(({ name }) => name.slice(0, 200)));
  await closeOthers({ db, network, log }, 'schema-changed', subjects);
  return changes.length === 0;
}

/** `null` where it cannot be told: a newer release has changed the schema, and this process goes on until it is replaced. */
async function compareSchema(db: Database): Promise<SchemaChange[] | null> {
  for (const isLast of [false, true]) {
    const changes = await db.snapshot(async (tx) => {
      await waitBriefly(tx);
      return (await isOfThisRelease(tx)) ? findSchemaChanges(tx) : null;
    });
    // PostgreSQL describes an object as it is now, not as it was at the start of a transaction: a migration that ends meanwhile would
    // look like a change.
    if (changes === null || changes.length === 0 || isLast) return changes;
  }
  return null;
}

async function isOfThisRelease(tx: Sql): Promise<boolean> {
  try {
    return (await pendingMigrations(tx)) === 0;
  } catch (error) {
    if ((error as { code?: unknown }).code === 'SCHEMA_NEWER') return false;
    throw error;
  }
}

function describe(change: SchemaChange): string {
  const { expected, found } = change;
  const parts = [
    `${nameChange(change)}: what the ledger guarantees does not hold for what is written now.`,
    found === null ? '' : `It is: ${found.slice(0, MAX_SHOWN)}.`,
    expected === null ? '' : `It should be: ${expected.slice(0, MAX_SHOWN)}.`,
    'Find out who did that; see "schema-changed" in docs/operations.md',
  ];
  return parts.filter((part) => part !== '').join(' ');
}

async function checkAddresses({ db, network, log }: Leading): Promise<boolean> {
  const damaged = await findDamagedAddresses(db, network, MAX_ALARMS);
  for (const one of damaged) await notifyDamagedAddress(db, log, one);
  const subjects = new Set<string>(damaged.map(({ account }) => accountToAddress(account)));
  await closeOthers({ db, network, log }, 'address-damaged', subjects);
  return damaged.length === 0;
}
