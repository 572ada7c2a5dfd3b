import { accountToAddress } from '@quittance/tron/address';
import type { UnixMs } from '../domain/time.ts';
import type { Logger } from '../runtime/log.ts';
import type { Loop } from '../runtime/loop.ts';
import { raiseAlarm, settleAlarms } from '../store/chain/alarms.ts';
import { describeDamaged } from '../store/db/address-column.ts';
import type { Database, Sql } from '../store/db/database.ts';
import { findLedgerIdentity, takeLedger } from '../store/db/ledger-identity.ts';
import { pendingMigrations } from '../store/db/migrate.ts';
import { rowsOf } from '../store/db/rows-of.ts';
import { findSchemaChanges, nameChange, type SchemaChange, waitBriefly } from '../store/db/schema-changes.ts';
import { type SealedTable, sealColumn } from '../store/db/seal.ts';
import {
  SEALED_ANNULMENT,
  SEALED_LIMITS,
  SEALED_OUTGOING,
  SEALED_PASSED,
  SEALED_RESOLUTION,
} from '../store/db/sealed-tables.ts';
import { isAsSealed } from '../store/db/statement.ts';
import { findDamagedAddresses } from '../store/ledger/addresses.ts';
import { findProjectNetworks } from '../store/ledger/projects.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from './watching.ts';

/** Problems must be found within a minute, so the interval is half a minute. One check takes about 0.1 s. */
const CHECK_MS = 30_000;
/** If there are more changes, probably everything has changed. The remaining ones are reported once the first ones are resolved. */
const MAX_ALARMS = 20;
const MAX_SHOWN = 700;

/**
 * Compares the schema with this release's schema, and each address of a network with its account. Also checks the seals on operators'
 * decisions, and records a promotion. Runs immediately and then every 30 s, while this process is the leader, until it's stopped.
 */
export function startGuaranteeWatch(options: Leading): Loop {
  const { network, now, isLeader } = options;
  const db = whileLeading(options.db, network, isLeader);
  let lookedAt: UnixMs | null = null;
  const look = async () => {
    const at = now();
    // If the clock was set back, the check is due immediately.
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

/**
 * Returns `null` if the schema can't be judged because a newer release has changed it. This process then keeps running until it's replaced.
 */
async function compareSchema(db: Database): Promise<SchemaChange[] | null> {
  for (const isLast of [false, true]) {
    const changes = await db.snapshot(async (tx) => {
      await waitBriefly(tx);
      return (await isOfThisRelease(tx)) ? findSchemaChanges(tx) : null;
    });
    // PostgreSQL describes an object as it is now, not as it was at the start of the transaction. So a migration that finishes in the
    // meantime would look like tampering.
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
    `${nameChange(change)}: someone changed the schema, so the database may no longer enforce the ledger's guarantees.`,
    found === null ? '' : `It is: ${found.slice(0, MAX_SHOWN)}.`,
    expected === null ? '' : `It should be: ${expected.slice(0, MAX_SHOWN)}.`,
    'Find out who made this change; see "schema-changed" in docs/reference/alarms.md',
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

const isSound = (table: SealedTable) => ({ isSound: isAsSealed({ ...table, isReadOnce: true }) });

/** Operators make only a few decisions. If an attacker adds many of them, the first one already reveals the attack. */
const newest = (name: string, table: SealedTable, order: string) =>
  rowsOf(
    name,
    isSound(table),
    `select ${sealColumn(table, 't.')} as is_sound from ${table.name} t order by ${order} desc limit 1000`,
  );

/** The recent outgoing transfers of each project's addresses, which `transfers refund` relies on. */
const outgoing = rowsOf(
  'decisions-outgoing',
  isSound(SEALED_OUTGOING),
  `select ${sealColumn(SEALED_OUTGOING, 't.')} as is_sound
   from (select id from projects order by created_at desc, id limit 1000) p
   cross join lateral (select * from outgoing_transfers o where o.project_id = p.id order by o.block_number desc limit 100) t
   limit 10000`,
);

const limits = rowsOf(
  'decisions-limits',
  isSound(SEALED_LIMITS),
  `select ${sealColumn(SEALED_LIMITS, 't.')} as is_sound from projects t order by created_at desc, id limit 1000`,
);

const DECISIONS = [
  outgoing,
  limits,
  newest('decisions-annulments', SEALED_ANNULMENT, 't.annulled_at'),
  newest('decisions-resolutions', SEALED_RESOLUTION, 't.id'),
  newest('decisions-passed-blocks', SEALED_PASSED, 't.id'),
];

/** Reads the operators' newest decisions and the outgoing transfers, because reading checks their seals. */
export async function examineDecisions(db: Sql): Promise<void> {
  for (const read of DECISIONS) await read(db);
}

/**
 * Records that the server is on a new timeline, because it was promoted or recovered to a point in time. Raises an alarm on each of the
 * ledger's networks. Both happen in the same transaction, so each new timeline is reported exactly once.
 */
export async function notePromotion({ db, log }: { db: Database; log: Logger }): Promise<void> {
  const before = await findLedgerIdentity(db);
  if (before === null || !before.isHere || !before.isTimelineNew) return;
  await db.transaction(async (tx) => {
    const identity = await findLedgerIdentity(tx);
    if (identity === null || !identity.isHere || !identity.isTimelineNew) return;
    await takeLedger(tx, identity, 'not-lossy');
    const subject = `timeline ${identity.timeline}`;
    for (const network of await findProjectNetworks(tx)) {
      const detail = `the database server was promoted, or recovered to an earlier time: it is now on ${subject}, and was previously on ${identity.formerTimeline}. After a failover to a synchronous standby, nothing is lost. After any other failover, and after a recovery, shops may already have invoices that are missing here: stop every process and run "quittance restore accept --retire-addresses", so that Quittance never uses an amount twice. See docs/guides/backup.md. If you are sure that nothing is lost, run "quittance chain acknowledge --network ${network} --alarm database-promoted"`;
      await raiseAlarm(tx, network, { kind: 'database-promoted', subject, detail });
      log.error({ alarm: 'database-promoted', network, subject }, detail);
    }
  });
}
