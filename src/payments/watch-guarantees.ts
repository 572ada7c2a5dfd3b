import type { UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import { settleAlarms } from '../store/chain/tell-alarms.ts';
import { describeDamaged } from '../store/db/address-column.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { pendingMigrations } from '../store/db/migrate.ts';
import { findSchemaChanges, nameChange, type SchemaChange, waitBriefly } from '../store/db/schema-changes.ts';
import { findDamagedAddresses } from '../store/ledger/addresses.ts';
import { examineDecisions } from '../store/ledger/decisions.ts';
import { accountToAddress } from '../tron/address.ts';
import { notePromotion } from './note-timeline.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from './watching.ts';

/** Half of the minute within which what is wrong is found. One look takes about 0.1 s. */
const CHECK_MS = 30_000;
/** A change of more than these is a change of everything; the rest is told when these are put right. */
const MAX_ALARMS = 20;
const MAX_SHOWN = 700;

/**
 * Compares the schema with the one of this release, and each address of a network with its account, examines what operators decided, and notes a promotion: at once, and then every 30 s,
 * while this process is the leader. Never ends by itself.
 */
export function startGuaranteeWatch(options: Leading): Loop {
  const { network, now, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  let lookedAt: UnixMs | null = null;
  const look = async () => {
    const at = now();
    // A clock that was put back does not put this off.
    if (lookedAt !== null && at >= lookedAt && at - lookedAt < CHECK_MS) return;
    const own = { ...options, db };
    await takeEach([
      () => checkSchema(own),
      () => checkAddresses(own),
      () => examineDecisions(db),
      () => notePromotion(own),
    ]);
    lookedAt = at;
  };
  const onFollower = () => {
    lookedAt = null;
  };
  return guardWhileLeading(options, { name: 'guarantees', onFollower }, look);
}

async function checkSchema({ network, ...telling }: Leading): Promise<void> {
  const changes = await compareSchema(telling.db);
  const found = changes
    ?.slice(0, MAX_ALARMS)
    .map((change) => ({ network, subject: change.name.slice(0, 200), detail: describe(change) }));
  if (found !== undefined) await settleAlarms(telling, 'schema-changed', found, { networks: [network] });
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

async function checkAddresses({ network, ...telling }: Leading): Promise<void> {
  const damaged = await findDamagedAddresses(telling.db, network, MAX_ALARMS);
  const found = damaged.map((one) => {
    return { network, subject: accountToAddress(one.account), detail: describeDamaged(one) };
  });
  await settleAlarms(telling, 'address-damaged', found, { networks: [network] });
}
