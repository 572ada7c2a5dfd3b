import type { Network } from '../../domain/network.ts';
import type { AccountHex, TronAddress } from '../../tron/address.ts';
import { addressColumn } from '../db/address-column.ts';
import { answerOf, rowsOf } from '../db/rows-of.ts';
import { maybeCount, maybeText, text } from '../db/statement.ts';
import type { Freeze } from '../ledger/addresses.ts';

/** The pause of the contract, as migration 0037 explains it. */
export type Pause = 'seen' | 'paused';

const frozen = { address: 'address', freezeState: text<Freeze>(), freezeBlock: maybeCount } as const;

/** The oldest 1,000 of a network, whatever project has them. */
export const findFrozen = rowsOf(
  'contract-frozen',
  frozen,
  `select ${addressColumn('a')} as address, a.freeze_state, a.freeze_block from addresses a
   where a.network = $1 and a.freeze_state is not null order by a.id limit 1000`,
  (network: Network) => [network],
);

/** `null`: no block of the network was examined yet. */
export const findPause = answerOf(
  'contract-pause',
  { solidNumber: maybeCount, pauseState: maybeText<Pause>(), pauseBlock: maybeCount },
  'select solid_number, pause_state, pause_block from chain_cursors where network = $1',
  (network: Network) => [network],
  ([row]) => row ?? null,
);

/** Addresses are frozen in blocks that can still be orphaned: exactly these, of those that no irreversible block says anything of. */
export const setSeenFreezes = answerOf(
  'contract-freeze-seen',
  { address: 'address' },
  `update addresses a set freeze_state = case when a.freeze_state is null then 'seen' end
   from (select coalesce(array_agg(decode(e, 'hex')), '{}') as accounts from unnest($2::text[]) e) s
   where a.network = $1 and (a.freeze_state = 'seen' and a.account <> all (s.accounts) or a.freeze_state is null and a.account = any (s.accounts))
   returning ${addressColumn('a')} as address`,
  (network: Network, accounts: readonly AccountHex[]) => [network, accounts],
  ({ length }) => length > 0,
);

/** The same for the pause of the contract. */
export const setSeenPause = answerOf(
  'contract-pause-seen',
  { network: 'text' },
  `update chain_cursors set pause_state = case when pause_state is null then 'seen' end
   where network = $1 and (pause_state is null and $2::bool or pause_state = 'seen' and not $2::bool) returning network`,
  (network: Network, isPaused: boolean) => [network, isPaused],
  ({ length }) => length > 0,
);

type Change = { account: AccountHex; isFrozen: boolean; block: number };

/** An irreversible block froze an address of a project, or let it go. Returns the address if that changes anything. */
export const setFreeze = answerOf(
  'contract-freeze',
  { address: 'address' },
  `update addresses a set freeze_state = case when $3::bool then 'frozen' else 'lifted' end, freeze_block = $4
   where a.network = $1 and a.account = decode($2, 'hex') and coalesce(a.freeze_block, -1) < $4
     and (case when $3::bool then a.freeze_state is distinct from 'frozen' else a.freeze_state = 'frozen' end)
   returning ${addressColumn('a')} as address`,
  (network: Network, { account, isFrozen, block }: Change) => [network, account, isFrozen, BigInt(block)],
  ([row]): TronAddress | null => row?.address ?? null,
);

/** An irreversible block paused transfers, or let them go on. Returns whether that changes anything. */
export const setPause = answerOf(
  'contract-pause-set',
  { network: 'text' },
  `update chain_cursors set pause_state = case when $2::bool then 'paused' end, pause_block = $3
   where network = $1 and coalesce(pause_block, -1) < $3
     and (case when $2::bool then pause_state is distinct from 'paused' else pause_state = 'paused' end) returning network`,
  (network: Network, isPaused: boolean, block: number) => [network, isPaused, BigInt(block)],
  ({ length }) => length > 0,
);
