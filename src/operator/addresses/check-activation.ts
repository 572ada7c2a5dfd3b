import { setTimeout as delay } from 'node:timers/promises';
import { accountAt } from '../../chain/nodes/ask-accounts.ts';
import type { Node } from '../../chain/nodes/node.ts';
import type { NodePool } from '../../chain/nodes/node-pool.ts';
import { reasonOf } from '../../runtime/reason-of.ts';
import type { Candidate } from './read-candidates.ts';
import type { ActivationView } from './views.ts';

/** Runs what asks the nodes of the project's network. */
export type WithNodes = (ask: (pool: NodePool) => Promise<void>) => Promise<void>;

/** Each address takes a request, and providers limit requests. */
const MAX_CHECKED = 50;
const PARALLEL_REQUESTS = 4;
/** The addresses are already added; the answers of nodes are only advice. */
const LIMIT_MS = 10_000;

/** Asks which of the first 50 addresses exist on the chain. Never fails, and takes 10 seconds at most. */
export async function checkActivation(withNodes: WithNodes, candidates: readonly Candidate[]): Promise<ActivationView> {
  const found: ActivationView = { checked: 0, neverActivated: [], contracts: [], notCheckedBecause: null };
  const asked = candidates.slice(0, MAX_CHECKED);
  try {
    await withNodes(async (pool) => {
      const deadline = delay(LIMIT_MS, undefined, { ref: false });
      await Promise.race([askAll(pool, asked, found), deadline]);
    });
    if (found.checked < asked.length) found.notCheckedBecause = 'the nodes did not answer in time';
    else if (asked.length < candidates.length) found.notCheckedBecause = `at most ${MAX_CHECKED} are checked at once`;
  } catch (error) {
    found.notCheckedBecause = reasonOf(error);
  }
  return { ...found };
}

async function askAll(pool: NodePool, candidates: readonly Candidate[], found: ActivationView): Promise<void> {
  const waiting = [...candidates];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const kind = await askAny(await pool.available(), next);
      if (kind === null) continue;
      found.checked += 1;
      if (kind === 'absent') found.neverActivated.push(next.address);
      if (kind === 'contract') found.contracts.push(next.address);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_REQUESTS }, work));
}

/** The answer of the first node that answers; `null` if none does. */
async function askAny(nodes: readonly Node[], candidate: Candidate): Promise<'absent' | 'contract' | 'wallet' | null> {
  for (const node of nodes) {
    const shown = await node.ask(accountAt(candidate.account)).catch(() => undefined);
    if (shown === null) return 'absent';
    if (shown?.address === `41${candidate.account}`) return shown.isContract ? 'contract' : 'wallet';
  }
  return null;
}
