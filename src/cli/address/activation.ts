import { setTimeout as delay } from 'node:timers/promises';
import type { Node } from '../../chain/node.ts';
import type { NodePool } from '../../chain/node-pool.ts';
import { accountAt } from '../../chain/nodes/ask-accounts.ts';
import type { Network } from '../../domain/network.ts';
import type { Candidate } from '../../payments/add-addresses.ts';
import type { TronAddress } from '../../tron/address.ts';
import type { Terminal } from '../terminal.ts';
import type { CommandDatabase } from '../with-database.ts';
import { usingNodes } from '../with-nodes.ts';

/** What nodes say of addresses that were added. `reason`: why not all of them were asked about. */
export type Activation = {
  checked: number;
  neverActivated: TronAddress[];
  contracts: TronAddress[];
  reason: string | null;
};

/** One request each, and providers limit requests. */
const MAX_CHECKED = 50;
const PARALLEL_REQUESTS = 4;
/** The addresses are added by then; what nodes say is only advice. */
const LIMIT_MS = 10_000;

/** Asks the configured nodes which of the first 50 addresses exist on the chain. Never fails, and takes 10 seconds at most. */
export async function checkActivation(
  terminal: Pick<Terminal, 'stderr'>,
  database: Pick<CommandDatabase, 'db' | 'config'>,
  network: Network,
  candidates: readonly Candidate[],
): Promise<Activation> {
  const found: Activation = { checked: 0, neverActivated: [], contracts: [], reason: null };
  const asked = candidates.slice(0, MAX_CHECKED);
  const { config } = database;
  const isConfigured = config.sandbox ? network === 'devnet' : config.networks[network] !== undefined;
  if (!isConfigured) return { ...found, reason: `no node of ${network} is configured here` };
  try {
    await usingNodes(terminal, database, network, async ({ pool }) => {
      const deadline = delay(LIMIT_MS, undefined, { ref: false });
      await Promise.race([askAll(pool, asked, found), deadline]);
    });
    if (found.checked < asked.length) found.reason = 'the nodes did not answer in time';
    else if (asked.length < candidates.length) found.reason = `at most ${MAX_CHECKED} are checked at once`;
  } catch (error) {
    found.reason = error instanceof Error ? error.message : String(error);
  }
  return { ...found };
}

async function askAll(pool: NodePool, candidates: readonly Candidate[], found: Activation): Promise<void> {
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

/** What the first node says that answers; `null` where none does. */
async function askAny(nodes: readonly Node[], candidate: Candidate): Promise<'absent' | 'contract' | 'wallet' | null> {
  for (const node of nodes) {
    const shown = await node.ask(accountAt(candidate.account)).catch(() => undefined);
    if (shown === null) return 'absent';
    if (shown?.address === `41${candidate.account}`) return shown.isContract ? 'contract' : 'wallet';
  }
  return null;
}

/** The same for people. */
export function describeActivation(activation: Activation, added: number): string[] {
  const { checked, neverActivated, contracts, reason } = activation;
  const lines: string[] = [];
  if (neverActivated.length > 0) {
    lines.push(
      `never activated: ${neverActivated.join(', ')}`,
      '  They receive all the same. To spend from one, it must first be activated (send it about 1 TRX) and needs energy.',
      '  Whoever is the first to send USDT to an address that never held any pays about double the energy.',
      '  If you expected an address that is in use already, compare it with your wallet now.',
    );
  }
  if (contracts.length > 0) {
    lines.push(
      `NOT A WALLET: ${contracts.join(', ')} is a smart contract; money sent there is probably lost.`,
      `  Unless you control it: quittance address retire ${contracts.join(' ')}`,
    );
  }
  if (checked < added) {
    const which = checked === 0 ? '' : ` for ${added - checked} of ${added} addresses`;
    lines.push(`not checked${which} whether they were ever activated: ${reason ?? 'no node answered'}`);
  }
  return lines;
}
