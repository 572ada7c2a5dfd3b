import { randomUUID } from 'node:crypto';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Seals } from './database.ts';
import { findLedgerIdentity, takeLedger } from './ledger-identity.ts';
import type { Sealer, SealJudge } from './seal.ts';
import { createSealer } from './sealer.ts';

/** `keyRing`: `null` where the process has no master key, so that it neither seals nor examines. One may be made to seal with. */
export function createSeals(judge: SealJudge, keyRing: (mayCreate: boolean) => Promise<KeyRing | null>): Seals {
  let opened: Sealer | undefined;
  return {
    judge,
    open: async (sql, mayCreate) => {
      if (opened !== undefined) return opened;
      const ring = await keyRing(mayCreate);
      if (ring === null) return null;
      const identity = await findLedgerIdentity(sql);
      if (identity !== null) {
        opened = createSealer(ring, identity.id);
        return opened;
      }
      if (!mayCreate) return null;
      // A command comes before the first start of a service. What is written with it may be rolled back, so the next one asks again.
      const id = randomUUID();
      await takeLedger(sql, { id, firstIndex: 0 }, { isAnew: false });
      return createSealer(ring, (await findLedgerIdentity(sql))?.id ?? id);
    },
  };
}
