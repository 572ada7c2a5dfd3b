import { AppError } from '../../domain/errors.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import type { Seals, Sql } from './database.ts';
import { findLedgerIdentity, hasLedgerIdentity, newLedgerId, requiresSeals, takeLedger } from './ledger-identity.ts';
import { refuseUnknownKey } from './prove-key.ts';
import type { SealJudge, SealMode } from './seal.ts';
import { createSealer } from './sealer.ts';

/** `ledger` means that the mode depends on how the ledger began. */
type Given = { mode: SealMode | 'ledger'; onProblem: SealJudge['onProblem'] };

/**
 * `keyRing` returns `null` if the process has no master key; in that case, the process neither seals nor verifies. It may create a key to
 * seal with.
 */
export function createSeals(
  { mode, onProblem }: Given,
  keyRing: (mayCreate: boolean) => Promise<KeyRing | null>,
): Seals {
  const judge: SealJudge = { mode: mode === 'ledger' ? 'warn' : mode, isOlder: true, onProblem };
  let opened: Awaited<ReturnType<Seals['open']>> = null;
  /** Whether a process without a key may continue. */
  let needsNone = mode !== 'ledger';
  const openRing = async (sql: Sql, ring: KeyRing, id: string) => {
    const sealer = createSealer(ring, id);
    await refuseUnknownKey(sql, sealer);
    judge.mode = modeOf(mode, id);
    judge.isOlder = !requiresSeals(id);
    return sealer;
  };
  return {
    judge,
    open: async (sql, mayCreate) => {
      if (opened !== null) return opened;
      const ring = await keyRing(mayCreate);
      if (ring === null && needsNone) return null;
      if (!(await hasLedgerIdentity(sql))) return null;
      const identity = await findLedgerIdentity(sql);
      if (ring === null) {
        const needsKey = identity !== null && requiresSeals(identity.id);
        // Read-only commands such as "master-key status" may run without a key.
        if (needsKey && mayCreate) throw withoutKey();
        needsNone = identity !== null && !needsKey;
        return null;
      }
      if (identity !== null) {
        opened = await openRing(sql, ring, identity.id);
        return opened;
      }
      if (!mayCreate) return null;
      // A command is running before a service's first start. Its writes may be rolled back, so the next statement has to check again.
      const id = await newLedgerId(sql, mode !== 'warn');
      await takeLedger(sql, { id, firstIndex: 0 }, 'none');
      return openRing(sql, ring, (await findLedgerIdentity(sql))?.id ?? id);
    },
  };
}

/** Returns how seals are handled in a ledger (UUID). */
export function modeOf(mode: Given['mode'], ledgerId: string): SealMode {
  if (mode !== 'ledger') return mode;
  return requiresSeals(ledgerId) ? 'require' : 'warn';
}

function withoutKey(): AppError {
  return new AppError(
    'CONFIG_INVALID',
    "this ledger requires seals, but this process has no master key to create them: set QUITTANCE_MASTER_KEY to the key that the ledger's other processes use",
  );
}
