import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { openKeyRing } from '../../runtime/open-key-ring.ts';
import { tryReceiptKey } from '../../store/access/encrypt-receipt-key.ts';
import { findLedgerIdentity, refuseForeignLedger } from '../../store/db/ledger-identity.ts';
import { pendingMigrations } from '../../store/db/migrate.ts';
import { findSchemaChanges, nameChange } from '../../store/db/schema-changes.ts';
import { modeOf } from '../../store/db/seals.ts';
import { findDamagedSecrets } from '../../webhooks/watch-secrets.ts';
import { checkSeals } from '../ledger/seal-ledger.ts';
import { describeMissingKeys } from '../subjects/master-keys.ts';
import { atStake, type Check, failed, good, skipped, warning } from './check.ts';

const MIGRATE = say`Make a backup, and run "${{ command: 'migrate' }}" of this release, or start it.`;
/** SQLSTATE: there is no such table. */
const UNDEFINED_TABLE = '42P01';

export const migrations: Check = {
  name: 'migrations',
  needs: 'database',
  look: async ({ read }) => {
    try {
      const pending = await read((tx) => pendingMigrations(tx));
      if (pending === 0) return good('the schema is that of this release');
      return failed(`the schema lacks ${pending} migration(s) of this release`, MIGRATE);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === UNDEFINED_TABLE) {
        return failed('there are no tables of Quittance in the database', MIGRATE);
      }
      if (!(error instanceof AppError) || error.code === 'DATABASE_UNAVAILABLE') throw error;
      return failed(error.text, 'Use the release that brought the schema up to date, or a newer one.');
    }
  },
};

const MAX_TOLD = 5;

export const schema: Check = {
  name: 'schema',
  needs: 'schema',
  look: async ({ read }) => {
    const changes = await read(findSchemaChanges);
    if (changes.length === 0) return good('tables, constraints and triggers are as this release made them');
    const told = changes.slice(0, MAX_TOLD).map(nameChange).join(', ');
    return failed(`somebody changed ${changes.length} part(s) of the schema: ${told}`, CHANGED_SCHEMA);
  },
};
const CHANGED_SCHEMA = 'Find out who did it, and put it back: "A schema that was changed" in docs/operations.md.';

export const ledger: Check = {
  name: 'ledger',
  needs: 'schema',
  look: async ({ read }) => {
    const identity = await read(findLedgerIdentity);
    if (identity === null) return skipped('no service was ever started over this database');
    try {
      refuseForeignLedger(identity);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return failed(error.text, 'Do what the message says, before anything is started over this database.');
    }
    return good('the database is where its ledger was left');
  },
};

export const masterKey: Check = {
  name: 'master-key',
  needs: 'schema',
  look: async (look) => {
    const warned: string[] = [];
    const warn = (message: string) => void warned.push(message);
    const keyRing = await openKeyRing(look.settings, { mayCreate: false, warn });
    const missing = await look.read((tx) => describeMissingKeys({ db: tx, now: look.now, keyRing }));
    const fix = 'Give it the master keys that the service has, from where you keep a copy of them.';
    if (missing !== null) return failed(missing, fix);
    if (keyRing === null) {
      if (look.database().kind === 'embedded') return skipped('nothing needed a master key yet: the service makes it');
      return failed('QUITTANCE_MASTER_KEY is not set: no webhook is sent, no receipt is signed, no row is sealed', fix);
    }
    const { networks } = look.settings;
    const damaged = await look.read(async (tx) => ({
      secrets: await findDamagedSecrets({ db: tx, keyRing }),
      receipts: await tryReceiptKey(tx, keyRing),
    }));
    const found = damaged.secrets.map(({ detail }) => detail);
    if (damaged.receipts !== null && damaged.receipts.kind !== 'ok') {
      found.push(`The key that signs receipts does not open (${damaged.receipts.kind})`);
    }
    if (found.length > 0) {
      const more = found.length > 1 ? ` And ${found.length - 1} more.` : '';
      const rotate = say`Find out who wrote to the database. New secrets: "${{ command: 'webhook rotate' }}", "${{ command: 'receipt rotate' }}".`;
      return failed(`${found[0]}${more}`, rotate);
    }
    if (warned.length > 0) return atStake(look, warned.join('; '), 'Let its user alone read the file: chmod 600.');
    return good(`it opens every secret${networks.length === 0 ? '' : ', and the key of receipts if there is one'}`);
  },
};

/** Of each table; reading these takes some tenths of a second. */
const SEALED_ROWS_READ = 1000;

export const seals: Check = {
  name: 'seals',
  needs: 'schema',
  look: async (look) => {
    const { settings, actor, database } = look;
    const all = say`"${{ command: 'ledger seal', input: { check: true } }}" looks at every row.`;
    if (settings.rowMacs === 'off') {
      const says = 'QUITTANCE_ROW_MACS is off: who writes to the database past Quittance is not noticed';
      return warning(
        says,
        'Set QUITTANCE_ROW_MACS to warn, and later to require, for every process: see "Seals" in docs/operations.md.',
      );
    }
    const { db } = database();
    if ((await db.sealer(false)) === null) return skipped('without a master key no seal can be examined');
    const limits = { onProgress: () => undefined, maxRows: SEALED_ROWS_READ };
    const { tables, wrong } = await look.read((tx) => checkSeals({ db: tx, ...limits }, actor));
    const changed = wrong
      .filter(({ kind }) => kind !== 'unsealed')
      .map(({ table, id, kind }) => `${table}:${id} (${kind})`);
    if (changed.length > 0) {
      const says = `rows that are not as they were sealed: ${changed.slice(0, MAX_TOLD).join(', ')}`;
      return failed(says, say`See "A row that was changed" in docs/operations.md. ${all}`);
    }
    const unsealed = tables.reduce((sum, table) => sum + table.unsealed, 0);
    if (unsealed > 0) {
      const says = `${unsealed} rows have no seal`;
      return warning(says, say`When you have compared the ledger: "${{ command: 'ledger seal' }}". ${all}`);
    }
    const says = `the first ${SEALED_ROWS_READ} rows of each table are as they were sealed`;
    const ledger = await look.read((tx) => findLedgerIdentity(tx));
    if (ledger === null || modeOf(settings.rowMacs, ledger.id) === 'require') return good(says);
    return warning(
      `${says}, but QUITTANCE_ROW_MACS is warn: a row that somebody writes to the database is only an alarm, and counts as if Quittance had written it`,
      say`When "${{ command: 'ledger seal', input: { check: true } }}" finds nothing, set QUITTANCE_ROW_MACS=require for every process: see "Seals" in docs/operations.md.`,
    );
  },
};
