import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { say } from '../../../core/domain/message.ts';
import { NETWORKS } from '../../../core/domain/network.ts';
import { DAY_MS, toIso } from '../../../core/domain/time.ts';
import { createAddressGuard } from '../../../core/payments/manifest/address-guard.ts';
import { readInstalled } from '../../../core/payments/manifest/read-installed.ts';
import { openKeyRing } from '../../../core/runtime/open-key-ring.ts';
import { tryReceiptKey } from '../../../core/store/access/receipt-keys.ts';
import { addressColumn } from '../../../core/store/db/address-column.ts';
import { findLedgerIdentity, refuseForeignLedger, requiresSeals } from '../../../core/store/db/ledger-identity.ts';
import { pendingMigrations } from '../../../core/store/db/migrate.ts';
import { rowsOf } from '../../../core/store/db/rows-of.ts';
import { findSchemaChanges, nameChange } from '../../../core/store/db/schema-changes.ts';
import { modeOf } from '../../../core/store/db/seals.ts';
import { count } from '../../../core/store/db/statement.ts';
import { listStored } from '../../../core/store/ledger/addresses.ts';
import { notAnnulled, outgoingNotAnnulled } from '../../../core/store/ledger/annulments.ts';
import { findDamagedSecrets } from '../../../core/webhooks/watch-endpoints.ts';
import { findNewestBackup, isAsDigestSays, limitOfAge } from '../backup/backup-directory.ts';
import { admitBackup } from '../backup/backup-format.ts';
import { checkBackup } from '../backup/backup-read.ts';
import { describeMissingKeys } from '../encryption-keys.ts';
import { shorten } from '../input/problems.ts';
import { checkSeals } from '../ledger/seal-ledger.ts';
import { showCapacity } from '../subjects/capacity.ts';
import { type ListedProjectView, listProjects } from '../subjects/projects.ts';
import { listEndpoints } from '../subjects/webhooks.ts';
import {
  atStake,
  databaseCheck,
  type Finding,
  failed,
  good,
  type Look,
  schemaCheck,
  skipped,
  spell,
  warning,
  worstOf,
} from './check.ts';

const MIGRATE = say`Make a backup, then run "${{ command: 'migrate' }}" from this release, or start it.`;
/** The SQLSTATE for a missing table. */
const UNDEFINED_TABLE = '42P01';

const migrations = databaseCheck('migrations', async ({ read }) => {
  try {
    const pending = await read((tx) => pendingMigrations(tx));
    if (pending === 0) return good('the schema matches this release');
    return failed(
      `${pending} ${pending === 1 ? "migration from this release hasn't" : "migrations from this release haven't"} run`,
      MIGRATE,
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === UNDEFINED_TABLE) {
      return failed('the database contains no Quittance tables', MIGRATE);
    }
    if (!(error instanceof AppError) || error.code === 'DATABASE_UNAVAILABLE') throw error;
    return failed(error.text, 'Use the release that migrated the schema, or a newer release.');
  }
});

const MAX_TOLD = 5;

const schema = schemaCheck('schema', async ({ read }) => {
  const changes = await read(findSchemaChanges);
  if (changes.length === 0) return good('tables, constraints and triggers match this release');
  const told = changes.slice(0, MAX_TOLD).map(nameChange).join(', ');
  return failed(
    `someone changed the schema: ${told}${changes.length > MAX_TOLD ? `, and ${changes.length - MAX_TOLD} more` : ''}`,
    CHANGED_SCHEMA,
  );
});
const CHANGED_SCHEMA =
  'Find out who changed the schema, and restore it: see "The schema was changed" in docs/guides/tampering.md.';

const ledger = schemaCheck('ledger', async ({ read }) => {
  const identity = await read(findLedgerIdentity);
  if (identity === null) return skipped('no service has used this database yet');
  try {
    refuseForeignLedger(identity);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return failed(error.text, 'Resolve the problem in the message before you start any process on this database.');
  }
  return good('this database belongs to this ledger');
});

const masterKey = schemaCheck('master-key', async (look) => {
  const warned: string[] = [];
  const warn = (message: string) => void warned.push(message);
  const keyRing = await openKeyRing(look.settings, { mayCreate: false, warn });
  const missing = await look.read((tx) => describeMissingKeys({ db: tx, now: look.now, keyRing }));
  const fix = "Restore the service's master keys from your copy.";
  if (missing !== null) return failed(missing, fix);
  if (keyRing === null) {
    if (look.database().kind === 'embedded') return skipped('no master key is needed yet; the service creates one');
    return failed("QUITTANCE_MASTER_KEY is not set, so Quittance can't send webhooks, sign receipts or seal rows", fix);
  }
  const { networks } = look.settings;
  const damaged = await look.read(async (tx) => ({
    secrets: await findDamagedSecrets({ db: tx, keyRing }),
    receipts: await tryReceiptKey(tx, keyRing),
  }));
  const found = damaged.secrets.map(({ detail }) => detail);
  if (damaged.receipts !== null && damaged.receipts.kind !== 'ok') {
    found.push(`The receipt signing key can't be decrypted (${damaged.receipts.kind})`);
  }
  if (found.length > 0) {
    const more = found.length > 1 ? ` And ${found.length - 1} more.` : '';
    const rotate = say`Find out who wrote to the database. New secrets: "${{ command: 'webhook rotate' }}", "${{ command: 'receipt rotate' }}".`;
    return failed(`${found[0]}${more}`, rotate);
  }
  if (warned.length > 0) return atStake(look, warned.join('; '), 'Make the file readable only by its user: chmod 600.');
  return good(
    `the master key decrypts every secret${networks.length === 0 ? '' : ', and the receipt signing key if there is one'}`,
  );
});

/** How many rows are read from each table, which takes a few tenths of a second. */
const SEALED_ROWS_READ = 1000;

const seals = schemaCheck('seals', async (look) => {
  const { settings, actor, database } = look;
  const all = say`To check every row, run "${{ command: 'ledger seal', input: { check: true } }}".`;
  if (settings.rowMacs === 'off') {
    const says = 'QUITTANCE_ROW_MACS is off, so tampering with the database goes unnoticed';
    return warning(
      says,
      'Set QUITTANCE_ROW_MACS to warn, and later to require, for every process: see "Seals" in docs/guides/seals.md.',
    );
  }
  const { db } = database();
  if ((await db.sealer(false)) === null) return skipped("seals can't be verified without a master key");
  const limits = { onProgress: () => undefined, maxRows: SEALED_ROWS_READ };
  const { tables, wrong } = await look.read((tx) => checkSeals({ db: tx, ...limits }, actor));
  const ledger = await look.read((tx) => findLedgerIdentity(tx));
  // In such a ledger, no release leaves a row without a seal: only a process with QUITTANCE_ROW_MACS=off, or someone who wrote directly to
  // the database.
  const isSealedSinceStart = ledger !== null && requiresSeals(ledger.id);
  const changed = wrong
    .filter(({ kind }) => kind !== 'unsealed' || isSealedSinceStart)
    .map(({ table, id, kind }) => `${table}:${id} (${kind})`);
  if (changed.length > 0) {
    const says = `these rows don't match their seals: ${changed.slice(0, MAX_TOLD).join(', ')}`;
    return failed(
      says,
      say`See "A row was changed" in docs/guides/tampering.md, and for unsealed rows "Rows have no seal" there. ${all}`,
    );
  }
  const unsealed = tables.reduce((sum, table) => sum + table.unsealed, 0);
  if (unsealed > 0) {
    const says = unsealed === 1 ? '1 row has no seal' : `${unsealed} rows have no seal`;
    return warning(
      says,
      say`Compare the ledger with your own records, then run "${{ command: 'ledger seal' }}". ${all}`,
    );
  }
  const says = `the first ${SEALED_ROWS_READ} rows of each table match their seals`;
  if (ledger === null || modeOf(settings.rowMacs, ledger.id) === 'require') return good(says);
  return warning(
    `${says}, but QUITTANCE_ROW_MACS is warn: a forged row raises an alarm but still counts`,
    say`When "${{ command: 'ledger seal', input: { check: true } }}" finds nothing, set QUITTANCE_ROW_MACS=require for every process: see "Seals" in docs/guides/seals.md.`,
  );
});

/** The console uses the same limit for old backups. */
const OLD_MS = 7 * DAY_MS;
/** Reading a larger file takes longer than a check may. */
const MAX_READ_BYTES = 256 * 1024 ** 2;

const MAKE = say`Schedule "${{ command: 'backup' }}" with a timer, and keep the backups on another machine: see docs/guides/backup.md.`;
const SEE_WHY =
  'Check the alarm "backup-failed" and the logs of the processes with the watcher role, which make backups: see docs/guides/backup.md.';

/** Finds the newest backup that this program made, as recorded in its ledger. */
const findNewest = ({ read }: Look) => read(findNewestBackup);

const backupAge = schemaCheck('backup-age', async (look) => {
  const { backups } = look.settings;
  const backup = await findNewest(look);
  const judge = (says: string): Finding => {
    if (backups !== null)
      return atStake(look, `${says}, although scheduled backups are on (${backups.directory})`, SEE_WHY);
    if (look.database().kind === 'embedded') return atStake(look, says, MAKE);
    // Operators with their own PostgreSQL server use other backup tools, and this check can't see those backups.
    return warning(`${says}; backups made with PostgreSQL's own tools aren't visible here`, MAKE);
  };
  if (backup === null) return judge('Quittance has not made a backup yet');
  const age = look.now() - backup.madeAt;
  const says = `the newest backup by Quittance is ${spell(age)} old`;
  return age > (backups === null ? OLD_MS : limitOfAge(backups.intervalMs)) ? judge(says) : good(says);
});

const backupVerified = schemaCheck('backup-verified', async (look) => {
  const backup = await findNewest(look);
  if (backup === null) return skipped('Quittance has not made a backup yet');
  const { file } = backup;
  const verifiedAt = backup.verifiedAt && toIso(backup.verifiedAt);
  const verify = say`Verify it completely: "${{ command: 'backup', input: { verify: file } }}".`;
  const found = await stat(file).catch(() => null);
  if (found === null) {
    const says = `${file} is not on this machine`;
    if (verifiedAt === null) return warning(`${says}, and it was never verified completely`, verify);
    const once = `${says}; it was verified at ${verifiedAt}`;
    // A backup in the configured directory was meant to stay there.
    return dirname(file) === look.settings.backups?.directory ? warning(once, MOUNT) : good(once);
  }
  if (found.size > MAX_READ_BYTES) {
    return verifiedAt === null
      ? warning(`${file} is too large to check here, and it was never verified completely`, verify)
      : good(`${file} was verified at ${verifiedAt}`);
  }
  return readBackup(look, { file, verifiedAt });
});

const MOUNT =
  'If this machine made the backup, mount its disk again or find out who deleted it. If another machine made it, run this command there.';

async function readBackup({ settings }: Look, { file, verifiedAt }: { file: string; verifiedAt: string | null }) {
  const keyRing = await openKeyRing(settings, { mayCreate: false });
  const verify = say`Verify it completely: "${{ command: 'backup', input: { verify: file } }}".`;
  const anew = say`Make a new backup now: "${{ command: 'backup' }}". Find out why this backup is not valid.`;
  if ((await isAsDigestSays(file)) === false)
    return failed(`${file} was changed after it was verified: ${file}.sha256 contains a different digest`, anew);
  try {
    const { authenticity } = await checkBackup(file, { keyRing });
    admitBackup(file, authenticity, false);
    if (verifiedAt !== null) return good(`${file} is complete and authentic, and was verified at ${verifiedAt}`);
    return good(`${file} is complete and authentic; a restore was not tested`);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'BACKUP_ENCRYPTED') {
      if (verifiedAt !== null) return good(`${file} is encrypted, and was verified at ${verifiedAt}`);
      return skipped(`${file} is encrypted and can be checked only with its secret key`);
    }
    if (error.code === 'BACKUP_UNAUTHENTICATED') return warning(error.text, verify);
    return failed(error.text, anew);
  }
}

const NO_PROJECT = skipped('there is no project yet');

async function ofProjects(look: Look, judge: (project: ListedProjectView) => Promise<Finding[]>): Promise<Finding[]> {
  const { data } = await look.read((tx) => listProjects.run({ db: tx }, look.actor, { isArchived: false }));
  const findings: Finding[] = [];
  for (const project of data) findings.push(...(await judge(project)));
  return findings;
}

/** A receiver may be down this long during an update. */
const OUTAGE_MS = 3_600_000;

const receivers = schemaCheck('receivers', async (look) => {
  const { read, now, actor } = look;
  const findings = await ofProjects(look, async ({ projectId }) => {
    const { data } = await read((tx) => listEndpoints.run({ db: tx, now }, actor, { projectId }));
    return data.map(({ endpointId, url, status, failingSince, undelivered, disabledReason, lastAttempt }): Finding => {
      const name = `${endpointId} (${shorten(url, 80)})`;
      const fix = say`Find out why with "${{ command: 'webhook test', args: [endpointId] }}".`;
      if (status === 'active') {
        if (lastAttempt === null) {
          const test = { command: 'webhook test', args: [endpointId] };
          return skipped(say`${name} has received no events recently; test it with "${test}"`);
        }
        const page = lastAttempt.webPage;
        if (page === null) return good(`${name} accepts its events`);
        return warning(
          `${name} returned a web page for the last event, “${page}”: the event counts as delivered, but your receiver probably never saw it`,
          fix,
        );
      }
      if (status === 'disabled') {
        const why = disabledReason === null ? '' : `: ${shorten(disabledReason, 100)}`;
        return warning(
          `${name} is disabled${why}`,
          say`When the receiver works again, run "${{ command: 'webhook enable', args: [endpointId] }}".`,
        );
      }
      const since = failingSince === null ? 0 : now() - Date.parse(failingSince);
      const says = `${name} has accepted no events for ${spell(since)}; ${undelivered} are waiting`;
      return since > OUTAGE_MS ? failed(says, fix) : warning(says, fix);
    });
  });
  return worstOf(findings, skipped('no project has a webhook endpoint'));
});

const capacity = schemaCheck('capacity', async (look) => {
  const { read, now, actor } = look;
  const findings = await ofProjects(look, async ({ projectId, name }) => {
    const view = await read((tx) => showCapacity.run({ db: tx, now }, actor, { projectId }));
    const shown = `${projectId} (${shorten(name, 40)})`;
    const fix = say`Add addresses: "${{ command: 'address add', input: { projectId } }}" or "${{ command: 'address derive', input: { projectId } }}".`;
    if (view.activeAddresses === 0)
      return [warning(`${shown} has no active address, so no invoice can be created`, fix)];
    const used = view.amounts.find(({ free }) => free === 0);
    if (used !== undefined)
      return [
        failed(
          `${shown} has no payable amount left near ${used.amount} USDT, so Quittance refuses orders for this amount`,
          fix,
        ),
      ];
    if (!view.low) return [good(`${shown} has enough payable amounts`)];
    const left = view.daysLeft === null ? '' : `, for ${Math.floor(view.daysLeft)} days`;
    return [warning(`${shown} has few payable amounts left${left}`, fix)];
  });
  return worstOf(findings, NO_PROJECT);
});

const supportContact = schemaCheck('support-contact', async (look) => {
  const findings = await ofProjects(look, async ({ projectId, name, supportContact: contact }) => {
    if (contact !== null) return [good('payers see a support contact')];
    const says = `${projectId} (${shorten(name, 40)}) has no support contact, so payers who need help see only the shop's name`;
    const fix = say`Set one: "${{ command: 'project update', args: [projectId], input: { support: 'help@…' } }}".`;
    return [warning(says, fix)];
  });
  return worstOf(findings, NO_PROJECT);
});

const SOON_MS = 14 * 86_400_000;
const MAX_NAMED_ENDPOINTS = 3;

const addressesAttested = schemaCheck('addresses-attested', async (look) => {
  const { settings, read, now, isLive } = look;
  const { addressManifest } = settings;
  const draft = say`To list the unsigned addresses, run "${{ command: 'manifest draft' }}". See docs/guides/signed-addresses.md.`;
  if (addressManifest === null) {
    const says = 'no addresses are signed, so an attacker with database access can insert their own addresses';
    return isLive ? warning(says, draft) : skipped(`${says}; no main network is configured here`);
  }
  const identity = await read(findLedgerIdentity);
  const installed = await readInstalled(addressManifest, { ledgerId: identity?.id ?? null, now: now() });
  if (installed.kind === 'refused') return failed(installed.reason, draft);
  const guard = createAddressGuard(addressManifest, () => undefined);
  guard.install(installed.installed);
  const { unvouched, count } = await read(async (tx) => {
    const found: string[] = [];
    let all = 0;
    for (const network of NETWORKS.filter(guard.isGuarded)) {
      for await (const batch of listStored(tx, network)) {
        const used = batch.filter(({ isRetired }) => !isRetired);
        all += used.length;
        found.push(...used.filter((own) => guard.lackOf(own) !== null).map(({ address }) => address));
      }
    }
    return { unvouched: found, count: all };
  });
  if (unvouched.length > 0) {
    const says = `the current manifest lacks ${unvouched.length} of the active addresses: ${unvouched.slice(0, MAX_NAMED_ENDPOINTS).join(', ')}`;
    return failed(
      says,
      say`If these addresses are yours, sign a manifest that contains them. If not, someone wrote to the database. ${draft}`,
    );
  }
  const { serial, notAfter } = installed.installed.manifest;
  const leftMs = Date.parse(notAfter) - now();
  if (leftMs < SOON_MS) {
    const says = `the manifest (serial ${serial}) ${leftMs < 0 ? 'expired on' : 'expires on'} ${notAfter}`;
    return warning(says, say`Review the manifest, then sign and install a new manifest. ${draft}`);
  }
  return good(`the manifest (serial ${serial}) contains all ${count} active addresses`);
});

/** How many of the newest outgoing transfers are read for each project, and how many for each address among them. */
const [OF_PROJECT, OF_ADDRESS] = [1000, 20];
const SWEPT_WITHIN = '6 hours';
const LEAST_SWEEPS = 3;
const LEAST_SENDERS = 3;

/**
 * Finds addresses whose whole balance was always sent to the same place soon after several senders had paid, because this is how exchanges
 * sweep their customers' deposit addresses. Returns at most ten.
 */
const findSwept = rowsOf(
  'doctor-swept',
  { address: 'address', projectId: 'uuid', sweeps: count, toAddress: 'text' },
  `select ${addressColumn('a')} as address, a.project_id, count(*) as sweeps, min(s.to_address) as to_address
   from projects p
   cross join lateral (select distinct n.address_id from (
     select o.address_id from outgoing_transfers o where o.project_id = p.id
     order by o.block_number desc, o.tx_id desc, o.log_index desc limit ${OF_PROJECT}) n) met
   join addresses a on a.id = met.address_id and a.retired_at is null
   cross join lateral (
     select o.to_address, o.amount_micro, o.block_number, o.block_time, lag(o.block_number, 1, -1::int8) over (order by o.block_number) as since
     from (select * from outgoing_transfers o where o.address_id = a.id and ${outgoingNotAnnulled('o')}
           order by o.block_number desc limit ${OF_ADDRESS}) o) s
   cross join lateral (
     select sum(t.amount_micro) as micro, min(t.block_time) as first_at from transfers t
     where t.address_id = a.id and t.block_number > s.since and t.block_number <= s.block_number and ${notAnnulled('t')}) came
   where came.micro = s.amount_micro and s.block_time - came.first_at < interval '${SWEPT_WITHIN}'
   group by a.id
   having count(*) >= ${LEAST_SWEEPS} and count(distinct s.to_address) = 1
     and (select count(distinct f.from_address) from (
       select t.from_address from transfers t where t.address_id = a.id order by t.block_number desc limit 1000) f) >= ${LEAST_SENDERS}
   limit 10`,
  () => [],
);

const addressesOwn = schemaCheck('addresses-own', async ({ read }) => {
  const findings = (await read(findSwept)).map(({ address, projectId, sweeps, toAddress }) => {
    const says = `${address} of ${encodeId('prj', projectId)} looks like an exchange's deposit address: ${sweeps} times, its whole balance was sent to ${toAddress} within six hours`;
    const fix = say`If none of your own programs forwards this money, an exchange controls the address and may reject or lose payments. Add an address from your own wallet ("${{ command: 'address add' }}"), and retire this address ("${{ command: 'address retire' }}").`;
    return warning(says, fix);
  });
  return worstOf(findings, good("no active address looks like an exchange's deposit address"));
});

export const LEDGER_CHECKS = [migrations, schema, ledger, masterKey, seals];
export const PROJECT_CHECKS = [receivers, capacity, supportContact, addressesAttested, addressesOwn];
export const BACKUP_CHECKS = [backupAge, backupVerified];
