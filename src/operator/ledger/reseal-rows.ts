import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Sql } from '../../store/db/database.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import { mayReseal, SEALED_ROWS } from '../../store/db/sealed-rows.ts';
import { createSealer } from '../../store/db/sealer.ts';
import { walkRows } from './walk-rows.ts';

/** `left`: how many rows are still sealed with each former key, for this user of the database may not change them. */
type Resealed = { resealed: number; left: Map<string, number> };

/** Seals the rows anew, with the current key of the ring, that another of its keys sealed. What was changed, or has no seal, stays so. */
export async function resealRows({
  db,
  ring,
  onProgress,
}: {
  db: Sql;
  ring: KeyRing;
  onProgress(text: string): void;
}): Promise<Resealed> {
  const ledger = await findLedgerIdentity(db);
  if (ledger === null) return { resealed: 0, left: new Map() };
  const sealer = createSealer(ring, ledger.id);
  const [isAllowed, current] = [await mayReseal(db), sealer.keyId()];
  const walked = await walkRows(
    { db, sealer, onProgress },
    ({ problem, keyId }) => isAllowed && problem === null && keyId !== current,
  );
  const resealed = walked.tallies.reduce((sum, tally) => sum + tally.resealed, 0);
  return { resealed, left: walked.formerKeys };
}

/** Those of some master keys that a row names. Reads every row, 50,000 at a time, unless each key is met before. */
export async function findKeysOfRows(db: Sql, keyIds: readonly string[]): Promise<Set<string>> {
  const met = new Set<string>();
  for (const source of SEALED_ROWS) {
    for (let after: string | undefined = source.start; after !== undefined && met.size < keyIds.length; ) {
      const counts = await source.count(db, after);
      for (const { keyId, rows } of counts) if (keyId !== null && rows > 0 && keyIds.includes(keyId)) met.add(keyId);
      after = counts[0]?.last;
    }
  }
  return met;
}
