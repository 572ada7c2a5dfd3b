import type { AccountHex } from '@quittance/tron/address';
import type { Network } from '../../domain/network.ts';
import { followStates } from '../../payments/contract-states.ts';
import { type Leading, loopWhileLeading, whileLeading } from '../../payments/watching.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Loop } from '../../runtime/loop.ts';
import type { BookedAddress } from '../../store/chain/balance-checks.ts';
import { findPause, setFreeze, setPause } from '../../store/chain/contract-states.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import type { Database } from '../../store/db/database.ts';
import type { Node } from '../nodes/node.ts';
import type { NodePool } from '../nodes/node-pool.ts';
import { ofDifferentOperators } from '../nodes/operators.ts';
import { orNull } from '../proof/or-null.ts';
import { type Flag, readFlag } from './read-balance.ts';

export type StateDeps = {
  db: Database;
  network: Network;
  usdt: AccountHex;
  pool: Pick<NodePool, 'available'>;
  /** How many operators must agree before a state changes, because no header proves their answers. */
  agreement: number;
  log?: Logger;
};

/** The watcher sees every change of the contract, so a check only finds a state from before the watcher's time. It costs three requests. */
const LOOK_MS = 3_600_000;
const FIRST_RETRY_MS = 2000;

/**
 * Compares the ledger's state of an address with whether the contract reports it as frozen. Adopts the contract's answer if enough
 * operators agree. Returns whether the two are known to match.
 */
export async function compareFreeze(
  deps: StateDeps,
  node: Node,
  address: BookedAddress,
  shown: Flag,
): Promise<boolean> {
  const { account, freezeState, freezeBlock } = address;
  // A sighting in a block that may still be orphaned is newer than any irreversible block.
  if (shown.isSet === null || freezeState === 'seen' || shown.isSet === (freezeState === 'frozen')) return true;
  const change = { account, isFrozen: shown.isSet, block: shown.high };
  if (!(await isAgreed(deps, node, shown, { method: 'isBlackListed(address)', account }, freezeBlock))) return false;
  await deps.db.transaction(async (tx) => {
    if (await setFreeze(tx, deps.network, change)) await followStates(deps, tx);
  });
  return false;
}

/**
 * Does the same for the pause of all transfers. Returns `null`, without asking a node, if no block of the network has been examined yet.
 */
async function comparePause(deps: StateDeps): Promise<boolean | null> {
  const known = await findPause(deps.db, deps.network);
  if (known === null) return null;
  const [node] = await deps.pool.available();
  if (node === undefined) return false;
  const shown = await readFlag(node, deps.usdt, { method: 'paused()' });
  const isPaused = shown.isSet;
  if (isPaused === null || known.pauseState === 'seen' || isPaused === (known.pauseState === 'paused')) return true;
  // Until the ledger has all blocks up to that height, it may still learn the state from one of them.
  if (((await findCursor(deps.db, deps.network))?.solid.number ?? 0) < shown.high) return false;
  if (!(await isAgreed(deps, node, shown, { method: 'paused()' }, known.pauseBlock))) return false;
  await deps.db.transaction(async (tx) => {
    if (await setPause(tx, deps.network, isPaused, shown.high)) await followStates(deps, tx);
  });
  return false;
}

type Asked = { method: string; account?: AccountHex };

/** `changedAt` is the block of the last change that the ledger knows. An older answer says nothing about the current state. */
async function isAgreed(deps: StateDeps, first: Node, shown: Flag, asked: Asked, changedAt: number | null) {
  const { pool, usdt, agreement, log, network } = deps;
  if (changedAt !== null && changedAt > shown.low) return false;
  const others = (await pool.available()).filter(({ operator }) => operator !== first.operator);
  const answers = await Promise.all(
    ofDifferentOperators(others, Number.POSITIVE_INFINITY).map((each) => readFlag(each, usdt, asked).catch(orNull)),
  );
  const isCurrent = (flag: Flag | null) => flag !== null && (changedAt === null || changedAt <= flag.low);
  const saying = answers.filter((flag) => isCurrent(flag) && flag?.isSet === shown.isSet).length + 1;
  if (saying >= agreement) return true;
  const what = {
    network,
    method: asked.method,
    account: asked.account,
    answer: shown.isSet,
    saying,
    needed: agreement,
  };
  log?.warn(what, 'too few operators agree on a state of the USDT contract: nothing changes until they do');
  return false;
}

/** Reads whether the contract is paused, at the start and every hour, and updates the alarms for its states. Runs until it's stopped. */
export function startStateWatch(deps: StateDeps & Leading): Loop {
  const db = whileLeading(deps.db, deps.network, deps.isLeader);
  let lookAt = Number.NEGATIVE_INFINITY;
  let retryMs = FIRST_RETRY_MS;
  const wait = (ms: number) => {
    lookAt = performance.now() + ms;
  };
  return loopWhileLeading(deps, { name: 'states of the contract', onFollower: () => wait(0) }, async () => {
    if (performance.now() < lookAt) return;
    wait(retryMs);
    await followStates(deps, db);
    const isKnown = await comparePause({ ...deps, db });
    if (isKnown === true) wait(LOOK_MS);
    retryMs = isKnown === false ? Math.min(2 * retryMs, LOOK_MS) : FIRST_RETRY_MS;
  });
}
