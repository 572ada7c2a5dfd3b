import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { type ContractEvent, type ContractState, contractEventRow, STATE_EFFECTS } from '../domain/contract-event.ts';
import { formatAmount, type MicroUsdt } from '../domain/money.ts';
import type { Network } from '../domain/network.ts';
import type { Logger } from '../runtime/log.ts';
import { type Finding, settleAlarms, tellAlarm } from '../store/chain/alarms.ts';
import { findOurAccounts } from '../store/chain/incoming.ts';
import { addressColumn } from '../store/db/address-column.ts';
import type { Sql } from '../store/db/database.ts';
import { answerOf, attemptOf } from '../store/db/rows-of.ts';
import { maybeCount, maybeText, type Row, statement, text } from '../store/db/statement.ts';
import type { Freeze } from '../store/ledger/addresses.ts';
import { type Watching, withCursor } from './watching.ts';

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
const setSeenFreezes = attemptOf(
  'contract-freeze-seen',
  `update addresses a set freeze_state = case when a.freeze_state is null then 'seen' end
   from (select coalesce(array_agg(decode(e, 'hex')), '{}') as accounts from unnest($2::text[]) e) s
   where a.network = $1 and (a.freeze_state = 'seen' and a.account <> all (s.accounts) or a.freeze_state is null and a.account = any (s.accounts))`,
  (network: Network, accounts: readonly AccountHex[]) => [network, accounts],
);

/** Like `setSeenFreezes`, but for the contract's pause. */
const setSeenPause = attemptOf(
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
const REPLACED = 'the USDT contract emitted Deprecate';

/** Returns the irreversible block in which Tether replaced the contract, or `null` if no such block was recorded. */
export const findReplacement = answerOf(
  'contract-replacement',
  { block: maybeCount },
  `select min((regexp_match(detail, '^${REPLACED} \\S+ in block (\\d{1,12})'))[1]::bigint) as block from alarms
   where network = $1 and kind = 'contract-event'`,
  (network: Network) => [network],
  ([row]) => row?.block ?? null,
);

/** The operator's next steps when the contract names its successor. */
const WHEN_REPLACED =
  ': it now forwards payments to that contract. Quittance accepts these payments if nodes from two operators agree on the new contract. With nodes from only one operator, Quittance holds the payments: add a ' +
  'node from another operator. Check whether Tether asks holders to move to the new token.';

type EventBlock = { number: number; events: readonly ContractEvent[] };
type Deps = Watching & { log: Logger };

/**
 * Returns the states that result from a sequence of events. It leaves out accounts that no event affects, and also the pause if no event
 * affects it.
 */
function statesAfter(events: readonly ContractEvent[]): { frozen: Map<AccountHex, boolean>; isPaused: boolean | null } {
  const frozen = new Map<AccountHex, boolean>();
  let isPaused: boolean | null = null;
  for (const { name, account } of events) {
    const { begins, ends } = contractEventRow(name);
    const state = begins ?? ends;
    if (state === 'paused') isPaused = begins !== undefined;
    if (state === 'frozen' && account !== null) frozen.set(account, begins !== undefined);
  }
  return { frozen, isPaused };
}

/**
 * Applies the events of irreversible blocks in order: sets states, and raises alarms for single events. Call it before the blocks are
 * recorded; if the process crashes in between, the events are applied again, which has no effect. Throws `LEASE_LOST`.
 */
export async function applyContractEvents(deps: Deps, blocks: readonly EventBlock[]): Promise<void> {
  if (blocks.every(({ events }) => events.length === 0)) return;
  await withCursor(deps, async (tx) => {
    let hasChanged = false;
    for (const { number, events } of blocks) {
      const { frozen, isPaused } = statesAfter(events);
      for (const [account, isFrozen] of frozen) {
        if (await setFreeze(tx, deps.network, { account, isFrozen, block: number })) hasChanged = true;
      }
      if (isPaused !== null && (await setPause(tx, deps.network, isPaused, number))) hasChanged = true;
      for (const event of events) await reportEvent(deps, tx, number, event);
    }
    if (hasChanged) await followStates(deps, tx);
  });
}

/**
 * Stores the states that events above the newest irreversible block would cause, so that no one is asked to pay in the meantime. `events`
 * must be complete, because states that it doesn't explain are removed as orphaned. Throws `LEASE_LOST`.
 */
export async function showPendingEvents(deps: Deps, events: readonly ContractEvent[]): Promise<void> {
  const { frozen, isPaused } = statesAfter(events);
  const accounts = [...frozen].flatMap(([account, isFrozen]) => (isFrozen ? [account] : []));
  await withCursor(deps, async (tx) => {
    const changed = [
      await setSeenFreezes(tx, deps.network, accounts),
      await setSeenPause(tx, deps.network, isPaused === true),
    ];
    if (changed.includes(true)) await followStates(deps, tx);
  });
}

type AlarmDeps = Pick<Deps, 'network'> & Partial<Pick<Deps, 'log'>>;

/** Raises the alarm for each current state, and closes the alarms for all other states. It's idempotent. */
export async function followStates(deps: AlarmDeps, db: Sql): Promise<void> {
  const frozen = (await findFrozen(db, deps.network)).filter(({ freezeState }) => freezeState !== 'lifted');
  const pause = (await findPause(db, deps.network))?.pauseState ?? null;
  const settle = (state: ContractState, found: readonly Omit<Finding, 'network'>[]) =>
    settleAlarms(
      { db, log: deps.log },
      STATE_EFFECTS[state].alarm,
      found.map((each) => ({ network: deps.network, ...each })),
      {
        networks: [deps.network],
      },
    );
  await settle(
    'frozen',
    frozen.map(({ address, freezeState }) => ({
      subject: address,
      detail: `Tether's contract froze ${address}${doubt(freezeState)}: it can still receive USDT, but cannot send any. New invoices don't use the address, and the pages of its open invoices tell payers not to send anything. Ask Tether for the reason. Direct payers to other addresses. When Tether has unfrozen the address, activate it with: quittance address activate ${address}`,
    })),
  );
  const detail = `Tether paused all USDT transfers on TRON${doubt(pause)}: payments fail and cost payers a fee. Payment pages inform payers and show no address. Wait until Tether resumes transfers; the alarm then closes automatically`;
  await settle('paused', pause === null ? [] : [{ subject: '', detail }]);
}

function doubt(state: string | null): string {
  return state === 'seen' ? ', in a block that can still be orphaned' : '';
}

/** Reports events that operators must know about, even though they don't leave a state behind. */
async function reportEvent(deps: Deps, tx: Sql, block: number, event: ContractEvent): Promise<void> {
  const { network, log } = deps;
  const { name, txId, logIndex, account, amountMicro, detail } = event;
  const { alarm } = contractEventRow(name);
  if (alarm === 'contract-event') {
    await tellAlarm({ db: tx, log }, alarm, {
      network,
      subject: txId,
      detail:
        name === 'Deprecate'
          ? `${REPLACED} ${detail} in block ${block}${WHEN_REPLACED}`
          : `the USDT contract emitted ${name} ${detail} in block ${block}`,
    });
  }
  if (alarm !== 'funds-destroyed' || account === null || amountMicro === null || amountMicro === 0n) return;
  if (!(await findOurAccounts(tx, deps.network, [account])).has(account)) return;
  await tellAlarm({ db: tx, log }, alarm, {
    network,
    subject: `${txId}:${logIndex}`,
    detail: `Tether destroyed ${formatAmount(amountMicro as MicroUsdt)} USDT, the whole balance of the frozen address ${accountToAddress(account)}, in block ${block} (transaction ${txId}). The ledger records it as sent to the zero address. Ask Tether`,
  });
}
