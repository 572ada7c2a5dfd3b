import { randomUUID } from 'node:crypto';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Sql } from './database.ts';
import { findLedgerIdentity, takeLedger } from './ledger-identity.ts';
import type { Sealer, SealJudge } from './seal.ts';
import { createSealer } from './sealer.ts';

/** The seals of a process: the keys are opened when they are needed first. Who only reads makes neither a key nor the ledger its own. */
export type Seals = { judge: SealJudge; open(sql: Sql, isWriting: boolean): Promise<Sealer | null> };

/** `keyRing`: `null` where the process has no master key, so that it neither seals nor examines. `mayCreate`: it may make the first one. */
export function createSeals(judge: SealJudge, keyRing: (mayCreate: boolean) => Promise<KeyRing | null>): Seals {
  let opened: Sealer | null | undefined;
  return {
    judge,
    open: async (sql, isWriting) => {
      if (opened !== undefined) return opened;
      const ring = await keyRing(isWriting);
      if (ring === null) {
        // A process that could not make a key has none until its end.
        if (isWriting) opened = null;
        return null;
      }
      const identity = await findLedgerIdentity(sql);
      if (identity !== null) {
        opened = createSealer(ring, identity.id);
        return opened;
      }
      // Without an identity nothing was ever sealed.
      if (!isWriting) return null;
      // A command comes before the first start of a service. What is written with it may be rolled back, so the next one asks again.
      const id = randomUUID();
      await takeLedger(sql, { id, firstIndex: 0 }, { isAnew: false });
      return createSealer(ring, (await findLedgerIdentity(sql))?.id ?? id);
    },
  };
}
