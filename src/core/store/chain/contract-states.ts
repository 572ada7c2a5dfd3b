import type { AccountHex } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import { addressColumn } from '../db/address-column.ts';
import type { Sql } from '../db/database.ts';
import { answerOf, attemptOf } from '../db/rows-of.ts';
import { maybeCount, maybeText, type Row, statement, text } from '../db/statement.ts';
import type { Freeze } from '../ledger/addresses.ts';

/** The contract's pause; see migration 0037. */
type Pause = 'seen' | 'paused';

const frozen = { address: 'address', freezeState: text<Freeze>(), freezeBlock: maybeCount } as const;

const selectFrozen = statement(
  'contract-frozen',
  frozen,
  `select ${addressColumn('a')} as address, a.freeze_state, a.freeze_block from addresses a
   where a.network = $1 and a.freeze_state is not null order by a.id limit 1000`,
);

/**
 * Returns a network's oldest 1,000 frozen addresses, from any project. An address that fails its integrity check is left out, because it
 * has its own alarm.
 */
export function findFrozen(db: Sql, network: Network): Promise<Row<typeof frozen>[]> {
  return db.run(selectFrozen, [network], []);
}

/** Returns `null` if no block on the network has been examined yet. */
export const findPause = answerOf(
  'contract-pause',
  { solidNumber: maybeCount, pauseState: maybeText<Pause>(), pauseBlock: maybeCount },
  'select solid_number, pause_state, pause_block from chain_cursors where network = $1',
  (network: Network) => [network],
  ([row]) => row ?? null,
);

/**
 * Stores which addresses are frozen by blocks that can still be orphaned. An address whose state comes from an irreversible block doesn't
 * change.
 */
export const setSeenFreezes = attemptOf(
  'contract-freeze-seen',
  `update addresses a set freeze_state = case when a.freeze_state is null then 'seen' end
   from (select coalesce(array_agg(decode(e, 'hex')), '{}') as accounts from unnest($2::text[]) e) s
   where a.network = $1 and (a.freeze_state = 'seen' and a.account <> all (s.accounts) or a.freeze_state is null and a.account = any (s.accounts))`,
  (network: Network, accounts: readonly AccountHex[]) => [network, accounts],
);

/** Like `setSeenFreezes`, but for the contract's pause. */
export const setSeenPause = attemptOf(
  'contract-pause-seen',
  `update chain_cursors set pause_state = case when pause_state is null then 'seen' end
   where network = $1 and (pause_state is null and $2::bool or pause_state = 'seen' and not $2::bool)`,
  (network: Network, isPaused: boolean) => [network, isPaused],
);

type Change = { account: AccountHex; isFrozen: boolean; block: number };

/** Records that an irreversible block froze or unfroze a project's address. Returns whether that changed anything. */
export const setFreeze = attemptOf(
  'contract-freeze',
  `update addresses a set freeze_state = case when $3::bool then 'frozen' else 'lifted' end, freeze_block = $4
   where a.network = $1 and a.account = decode($2, 'hex') and coalesce(a.freeze_block, -1) < $4
     and (case when $3::bool then a.freeze_state is distinct from 'frozen' else a.freeze_state = 'frozen' end)`,
  (network: Network, { account, isFrozen, block }: Change) => [network, account, isFrozen, BigInt(block)],
);

/** Records that an irreversible block paused or resumed transfers. Returns whether that changed anything. */
export const setPause = attemptOf(
  'contract-pause-set',
  `update chain_cursors set pause_state = case when $2::bool then 'paused' end, pause_block = $3
   where network = $1 and coalesce(pause_block, -1) < $3
     and (case when $2::bool then pause_state is distinct from 'paused' else pause_state = 'paused' end)`,
  (network: Network, isPaused: boolean, block: number) => [network, isPaused, BigInt(block)],
);

/** The alarm text that reports the replacement. It stays in the database, because the replacement is recorded nowhere else. */
export const REPLACED = 'the USDT contract emitted Deprecate';

/** Returns the irreversible block in which Tether replaced the contract, or `null` if no such block was recorded. */
export const findReplacement = answerOf(
  'contract-replacement',
  { block: maybeCount },
  `select min((regexp_match(detail, '^${REPLACED} \\S+ in block (\\d{1,12})'))[1]::bigint) as block from alarms
   where network = $1 and kind = 'contract-event'`,
  (network: Network) => [network],
  ([row]) => row?.block ?? null,
);
