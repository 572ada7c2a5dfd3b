import { formatSigned, type Reconciled, reconcileAddress } from '../../chain/reconcile/reconcile-address.ts';
import { AppError } from '../../domain/errors.ts';
import { type Hint, say } from '../../domain/message.ts';
import { inGroups } from '../../runtime/in-groups.ts';
import { type BookedAddress, listBookedAddresses } from '../../store/chain/balance-checks.ts';
import { findCursor } from '../../store/chain/cursor.ts';
import { parseAddress, type TronAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import type { NodeDeps } from '../node-connection.ts';
import { rangeInput } from './read-range.ts';
import type { ReconciledAddress, ReconciledView } from './views.ts';

/** As many addresses as a project lists. */
const MAX_ADDRESSES = 10_000;
/** At the same time: four requests each. */
const PARALLEL_ADDRESSES = 8;
/** While nobody waits for a payment the watcher asks for what is irreversible every eighth block, which is every 24 s. */
const PATIENCE_MS = 30_000;
const CONFIRM_AFTER_MS = 3000;

/** `firstChecked`: addresses of which nothing was known before. `hints` show the blocks in which a difference must have happened. */
type ReconciledNow = { view: ReconciledView; firstChecked: ReadonlySet<string>; hints: readonly Hint[] };

/** An address that is asked about. Errors: `INVALID_ARGUMENT`. */
export function readAddress(text: string): TronAddress {
  const parsed = parseAddress(text.trim());
  if (parsed.kind === 'ok') return parsed.address;
  throw new AppError('INVALID_ARGUMENT', say`${{ field: 'address' }} ${clip(text)}: ${parsed.reason}`);
}

/** `patienceMs`: how long all of them wait for the ledger, which else waits for each. */
type Wanted = { addresses: readonly TronAddress[]; patienceMs?: number };

/**
 * Compares what these addresses, or all, hold on the chain with the ledger now. `onProgress` hears how many of how many are done;
 * `signal` ends the waiting. Errors: `NOT_FOUND`, `NO_NODE`, `NODE_REFUSED`.
 */
export async function reconcileNow(
  deps: NodeDeps & { onProgress(done: number, total: number): void; signal?: AbortSignal },
  _actor: Actor,
  { addresses: wanted, patienceMs: allMs = Number.POSITIVE_INFINITY }: Wanted,
): Promise<ReconciledNow> {
  const { db, network, onProgress } = deps;
  const addresses = chooseAddresses(await listBookedAddresses(db, network, MAX_ADDRESSES), wanted, network);
  const node = (await deps.pool.available()).at(-1);
  if (node === undefined) {
    throw new AppError('NO_NODE', say`no node of ${network} answers: see them with "${{ command: 'chain status' }}"`);
  }
  const standsAt = async () => (await findCursor(db, network))?.solid.number;
  const endMs = performance.now() + allMs;
  let patienceMs = PATIENCE_MS;
  const firstChecked = new Set<string>();
  const reconcileOne = async (booked: BookedAddress) => {
    const startedMs = performance.now();
    const before = await standsAt();
    const wait = {
      patienceMs: Math.max(0, Math.min(patienceMs, endMs - startedMs)),
      confirmAfterMs: CONFIRM_AFTER_MS,
    };
    const outcome = await reconcileAddress({ ...deps, node, ...wait }, booked);
    if (outcome.kind === 'too-early' && performance.now() - startedMs >= PATIENCE_MS) {
      // A ledger that is not written to, as while the service is stopped, comes no nearer for the next addresses either.
      if ((await standsAt()) === before) patienceMs = 0;
    }
    if (outcome.kind === 'good' && outcome.isFirst) firstChecked.add(booked.address);
    return toView(booked.address, outcome);
  };
  const data = await inGroups(addresses, PARALLEL_ADDRESSES, reconcileOne, (done) =>
    onProgress(done, addresses.length),
  );
  const hints = data.flatMap((each): Hint[] =>
    each.status === 'differs' ? [{ command: 'chain repair', input: rangeInput(network, each) }] : [],
  );
  return { view: { network, node: node.origin, data }, firstChecked, hints };
}

function chooseAddresses(all: BookedAddress[], wanted: readonly TronAddress[], network: string): BookedAddress[] {
  if (wanted.length === 0) return all;
  const byAddress = new Map(all.map((entry) => [entry.address, entry]));
  return [...new Set(wanted)].map((address) => {
    const found = byAddress.get(address);
    if (found !== undefined) return found;
    throw new AppError('NOT_FOUND', `no project on ${network} has the address ${address}`);
  });
}

function toView(address: string, outcome: Reconciled): ReconciledAddress {
  if (outcome.kind === 'too-early') return { address, status: 'too-early', reason: outcome.reason };
  if (outcome.kind === 'good') {
    const { block, balanceMicro, openingMicro } = outcome;
    const [balance, opening] = [formatSigned(balanceMicro), formatSigned(openingMicro)];
    return { address, status: 'good', block, balance, opening };
  }
  const { ledgerMicro, chainMicro, from, to } = outcome;
  const [ledger, chain] = [formatSigned(ledgerMicro), formatSigned(chainMicro)];
  return { address, status: 'differs', ledger, chain, difference: formatSigned(chainMicro - ledgerMicro), from, to };
}
