import type { AccountXpub } from '@quittance/tron/account-xpub';
import type { Network } from '../../domain/network.ts';
import { answerOf, attemptOf, commandOf, rowOf, rowsOf } from '../db/rows-of.ts';
import { sealColumn, sealOf } from '../db/seal.ts';
import { SEALED_ACCOUNT_KEY } from '../db/sealed-tables.ts';
import { sealedBefore, text } from '../db/statement.ts';

/**
 * A watch-only account key. `nextIndex` is one above the highest derived index, or far above it after a restore (`wasRestored`).
 * `autoDerived` is the number of addresses that were derived automatically, up to `autoDeriveLimit`. `isInUse` means that at least one of
 * its addresses isn't retired.
 */
const columns = {
  id: 'uuid',
  projectId: 'uuid',
  xpub: text<AccountXpub>(),
  nextIndex: 'int4',
  wasRestored: 'bool',
  autoDeriveLimit: 'int4',
  autoDerived: 'int4',
  isInUse: 'bool',
  seal: sealedBefore(SEALED_ACCOUNT_KEY),
} as const;

const SELECT = `select k.id, k.project_id, k.xpub,
   greatest(k.first_index, (select coalesce(max(derivation_index) + 1, 0) from addresses where account_key_id = k.id)) as next_index,
   k.first_index > 0 as was_restored, k.auto_derive_limit, k.auto_derived,
   exists (select from addresses a where a.account_key_id = k.id and a.retired_at is null) as is_in_use,
   ${sealColumn(SEALED_ACCOUNT_KEY, 'k.')} as seal
   from account_keys k`;

/** Finds the key with this xpub in any of the network's projects. */
export const findAccountKey = rowOf(
  'account-key-find',
  columns,
  `${SELECT} where k.network = $1 and k.xpub = $2`,
  (network: Network, xpub: string) => [network, xpub],
);

/** Returns a project's oldest 100 keys. */
export const listAccountKeys = rowsOf(
  'account-key-list',
  columns,
  `${SELECT} where k.project_id = $1 order by k.created_at, k.id limit 100`,
  (projectId: string) => [projectId],
);

/**
 * Returns the first index for account keys that may have been in the ledger before a restore, or 0 for a ledger that was never restored.
 */
export const findFirstIndex = answerOf(
  'account-key-first-index',
  { firstIndex: 'int4' },
  'select coalesce((select first_index from ledger_identity), 0) as first_index',
  () => [],
  ([row]) => row?.firstIndex ?? 0,
);

type NewAccountKey = {
  id: string;
  projectId: string;
  xpub: string;
  firstIndex: number;
  autoDeriveLimit: number;
};

/** Stores a project's key, which derives addresses from `firstIndex` on. Does nothing if a project on this network already has the key. */
export const insertAccountKey = commandOf(
  'account-key-insert',
  `insert into account_keys (id, project_id, network, xpub, first_index, auto_derive_limit, mac)
   select $1, p.id, p.network, $3, $4, $5, $6 from projects p where p.id = $2 on conflict (network, xpub) do nothing`,
  (key: NewAccountKey) => [
    ...[key.id, key.projectId, key.xpub, key.firstIndex, key.autoDeriveLimit],
    sealOf(SEALED_ACCOUNT_KEY, key),
  ],
);

/**
 * Increases a key's number of automatically derived addresses in this transaction. Returns `false` if that would exceed the key's limit.
 */
export const claimAutoDerived = attemptOf(
  'account-key-claim-auto-derived',
  `update account_keys set auto_derived = auto_derived + $2
   where id = $1 and auto_derived + $2 <= auto_derive_limit`,
  (id: string, count: number) => [id, count],
);
