import { resolve } from 'node:path';
import { AppError } from '../../core/domain/errors.ts';
import { refuseOtherFiles } from '../../faces/operator/backup/backup-read.ts';
import { acceptRestore, restoreBackup } from '../../faces/operator/backup/restore-backup.ts';
import { formatFields, writeText } from '../../faces/operator/command-words.ts';

import { readReason } from '../../faces/operator/input/readers.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';

import { encryptingWith, withDatabase } from '../terminal/with-database.ts';
import { describeAuthenticity, type OpenOptions, readOpening } from './read-opening.ts';

type RestoreOptions = OpenOptions & { by?: string; reason?: string };

export async function printRestored(terminal: Terminal, file: string, options: RestoreOptions): Promise<Result> {
  const path = resolve(file);
  const actor = cliActor(terminal, options.by);
  const unauthenticated = options.unauthenticated === true ? readReason(options.reason) : null;
  // A wrong setting or path is reported before a database is created.
  loadConfig(terminal);
  await refuseOtherFiles(path);
  const { view, authenticity } = await withDatabase(
    terminal,
    async ({ config, ...database }) => {
      const opening = await readOpening(terminal, config, options);
      const deps = { ...database, ...opening, hooks: encryptingWith(config, terminal), write: writeText };
      return restoreBackup(deps, actor, { path, unauthenticated });
    },
    { mayCreate: true, mayMigrate: false, takesAnySchema: true, asOwner: true },
  );
  const { takenAt, release, final, rowCounts, applied, barredAddresses, missingMasterKeyIds: missing } = view;
  const { auditHead, auditProblem } = view;
  return {
    data: view,
    text: formatFields([
      ['backup of', `${takenAt}, created by release ${release}`],
      ['authenticated', describeAuthenticity(authenticity)],
      ['invoices', String(rowCounts['invoices'] ?? 0)],
      ['transfers', String(rowCounts['transfers'] ?? 0)],
      ['migrations applied', applied.length === 0 ? null : applied.join(', ')],
      ['audit log', auditProblem === null ? auditHead : `CHANGED: ${auditProblem}`],
      ['addresses', final ? 'in use as before' : `${barredAddresses} permanently out of use, but still watched`],
    ]),
    next: [
      ...(auditProblem === null
        ? []
        : ['find out who changed the audit log: see "audit-broken" in docs/reference/alarms.md']),
      ...(missing.length === 0
        ? []
        : [
            `restore the master key (${missing.join(', ')}) before you start the service: without it, Quittance cannot decrypt the secrets in this backup`,
          ]),
      COPY_ADVICE,
      ...(final ? ['start the service here; never start it again where the backup was created'] : LOST_ADVICE),
    ].join('\n'),
  };
}

/** Seals depend on the ledger's id, which a copy shares, and on the master key. */
const COPY_ADVICE =
  'if this is a copy, such as a staging system: give the copy its own master key ("quittance master-key rotate") before anyone uses it. Otherwise, the original system would accept rows from the copy as genuine';

const LOST_ADVICE = [
  'changes made after the backup are lost here. Before you start the service:',
  '  - check users, admin keys, webhook endpoints and fixed rates, because they are as they were when the backup was created ("quittance user list", "quittance admin-key list", "quittance webhook list", "quittance adapter list")',
  'start the service and let it read the newer blocks, then:',
  '  - add new addresses, because Quittance refuses new invoices until you do; never reuse an address that was added after the backup',
  "  - if a key was revoked after the backup, revoke it again, and compare your shop's orders since the backup with the invoices in Quittance: see docs/guides/backup.md",
];

type AcceptOptions = { retireAddresses?: boolean; nothingCreatedSince?: boolean; by?: string };

export async function printAcceptedRestore(terminal: Terminal, options: AcceptOptions): Promise<Result> {
  const retires = options.retireAddresses === true;
  if (retires === (options.nothingCreatedSince === true)) {
    throw new AppError(
      'USAGE',
      'use either --retire-addresses or --nothing-created-since; if in doubt, use --retire-addresses',
    );
  }
  const actor = cliActor(terminal, options.by);
  const data = await withDatabase(
    terminal,
    (deps) => acceptRestore({ ...deps, write: writeText }, actor, { retires }),
    {
      ...{ mayCreate: false, mayMigrate: false, asOwner: true },
    },
  );
  return {
    data,
    text: retires
      ? `accepted: ${data.barredAddresses} addresses are permanently out of use, but still watched`
      : 'accepted: the ledger continues here unchanged',
    next: retires
      ? 'add addresses that were never in Quittance, because it refuses new invoices until you do. Before you start the service, check users, keys, webhook endpoints and fixed rates: docs/guides/backup.md'
      : 'never start a service with the other database again',
  };
}
