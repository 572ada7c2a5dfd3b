import { randomUUID } from 'node:crypto';
import { say } from '../../domain/message.ts';
import type { Connection, Sql } from '../../store/db/database.ts';
import { takeLedger } from '../../store/db/ledger-identity.ts';
import type { MigrationHooks } from '../../store/db/migrate.ts';
import { isSealParameter, type Sealer, type SealParameter } from '../../store/db/seal.ts';
import { createSealer } from '../../store/db/sealer.ts';
import type { Actor } from '../actor.ts';
import { recordActions, recordedActor } from '../record-actions.ts';
import { writeHead } from '../subjects/audit.ts';
import type { Authenticity } from './backup-mac.ts';
import type { Opening } from './backup-read.ts';
import { checkAudit } from './check-audit.ts';
import { loadBackup } from './load-backup.ts';
import { type QuietDatabase, refuseRunning } from './refuse-running.ts';
import { raiseRestored, type SecureDeps, secureCopy } from './secure-copy.ts';
import type { RestoredView } from './views.ts';

type Deps = QuietDatabase & SecureDeps & Required<Opening> & { connection: Connection; hooks: MigrationHooks };

/**
 * Loads a backup into an empty database. Unless it was a final one, no address in it gets a new invoice ever again: payers may hold
 * amounts that were handed out since. `unauthenticated`: why a file is taken that no master key vouches for. Errors as of `loadBackup`.
 */
export async function restoreBackup(
  { now, random, write, connection, keyRing, identities, hooks, ...database }: Deps,
  actor: Actor,
  { path, unauthenticated }: { path: string; unauthenticated: string | null },
): Promise<{ view: RestoredView; authenticity: Authenticity }> {
  await refuseRunning(database);
  const { header, authenticity, rowCounts, applied, finished } = await loadBackup({
    ...{ connection, path, keyRing, identities, hooks, takesUnauthenticated: unauthenticated !== null },
    finish: async (loaded, made, { kind }) => {
      const { ledger, takenAt } = made;
      const identity = ledger ?? { id: randomUUID(), firstIndex: 0 };
      await takeLedger(loaded, identity, { isAnew: true });
      const sealer = keyRing && createSealer(keyRing, identity.id);
      const tx = sealingWith(loaded, sealer);
      const audit = await checkAudit({ db: tx, sealer: kind === 'authentic' ? sealer : null }, made);
      const doubt =
        kind === 'authentic' ? '' : ` that no master key vouches for (taken by ${actor.name}: ${unauthenticated})`;
      const origin = `a backup of ${takenAt}${doubt}`;
      const isFinal = ledger?.isFinal === true;
      const barred = isFinal ? 0 : await secureCopy(tx, { now, random, write }, recordedActor(actor), origin);
      if (isFinal && kind !== 'authentic') {
        await raiseRestored(tx, { now, random, write }, () => say`${origin}: ${TO_COMPARE}`);
      }
      const detail = { takenAt, isFinal, authenticity: kind, barredAddresses: barred };
      await recordActions(tx, actor, now(), [
        { projectId: null, action: 'backup.restored', subject: identity.id, detail },
      ]);
      return { barred, audit };
    },
  });
  const missingMasterKeyIds = header.masterKeyIds.filter((id) => keyRing?.find(id) === undefined);
  const { takenAt, release, ledger } = header;
  const view = {
    ...{ takenAt, release, final: ledger?.isFinal === true, authenticity: authenticity.kind, rowCounts, applied },
    ...{ barredAddresses: finished.barred, missingMasterKeyIds },
    ...{ auditHead: writeHead(finished.audit.head), auditProblem: finished.audit.problem },
  };
  return { view, authenticity };
}

/** The transaction of a restore seals nothing by itself, because the ledger has its id only now. */
function sealingWith(tx: Sql, sealer: Sealer | null): Sql {
  const macOf = ({ table, row }: SealParameter) => sealer?.seal(table, row) ?? null;
  return {
    ...tx,
    sealer: async () => sealer,
    run: (statement, parameters) =>
      tx.run(
        statement,
        parameters.map((value) => (isSealParameter(value) ? macOf(value) : value)),
      ),
  };
}

/** After a restore of another kind `secureCopy` tells what is to be done. */
const TO_COMPARE = say`compare its addresses with those of your wallet ("${{ command: 'address list' }}") and its keys and endpoints with those that you made, then close this`;
