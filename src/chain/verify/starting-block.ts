import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { headerAt } from '../nodes/ask-block.ts';
import type { Node } from '../nodes/node.ts';
import { type ProvenHeader, readBlockId } from '../proof/prove-block.ts';
import { type KnownProducers, solidHeightBy } from './producers.ts';
import { checked, type Genesis, type ReadDeps, readAnyHeaderAt, readHeaderAt, type SolidHeader } from './read-block.ts';

/** How far the clock of the server that created the first invoice may be ahead of the chain's: far worse than clocks are. */
const CLOCK_MARGIN_MS = 10 * 60_000;
/** How far behind the irreversible block one is looked for first that is old enough: a little more than the margin takes. */
const FIRST_STEP_BLOCKS = 250;
/** Headers that are read to find out who built on the starting block, at most: four rounds of all 27 producers. */
const MAX_BUILT_BLOCKS = 108;

/** Block 0 of the node's network. Costs one request. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`. */
export async function readGenesis(deps: ReadDeps, node: Node): Promise<Genesis> {
  const shown = await node.ask(headerAt('any', 0));
  return checked(deps, node, () => {
    if (shown === null) throw new AppError('NODE_REFUSED', 'it does not show block 0', { retryable: true });
    const { number, ...rest } = readBlockId(shown);
    if (number === 0) return { number, ...rest, producer: null };
    throw new AppError('NODE_REFUSED', `block ${number} was shown for block 0`, { retryable: true });
  });
}

/**
 * The block after which a new network is followed: `built`, which is irreversible, or, if invoices were already created while
 * no node answered, the newest one that is surely older than the first of them. So no payment falls before the start. Two requests for
 * each doubling of the distance, and eight more. Errors as of `readHeaderAt`.
 */
export async function findStartingBlock(
  deps: ReadDeps,
  node: Node,
  { genesis, built }: { genesis: Genesis; built: SolidHeader },
  earliestInvoice: UnixMs | null,
): Promise<SolidHeader> {
  if (earliestInvoice === null) return built;
  const start = earliestInvoice - CLOCK_MARGIN_MS;
  if (built.time < start) return built;
  let low: SolidHeader = genesis;
  let high = built;
  // No further back than necessary, for not every node has everything since block 0.
  for (let step = FIRST_STEP_BLOCKS; high.number - step > 0; step *= 2) {
    const before = await readHeaderAt(deps, node, high.number - step);
    if (before.time < start) {
      low = before;
      break;
    }
    high = before;
  }
  while (high.number - low.number > 1) {
    const middle = await readHeaderAt(deps, node, Math.floor((low.number + high.number) / 2));
    if (middle.time < start) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * The newest block, `newest` or one before it, that is irreversible by the producers that built on it up to `newest`. A node may
 * call a block irreversible that is replaced a moment later, and a ledger that starts there would stand on no chain for
 * ever. Costs one request a block: 18 where all 27 producers take their turns. Errors as of `readAnyHeaderAt`; `BLOCK_UNVERIFIABLE` too
 * when the headers are no chain or not enough known producers built within the bound.
 */
export async function findBuiltUpon(
  deps: ReadDeps,
  node: Node,
  { genesis, newest }: { genesis: Genesis; newest: SolidHeader },
  producers: KnownProducers,
): Promise<SolidHeader> {
  const built: ProvenHeader[] = [];
  for (let block = newest; built.length < MAX_BUILT_BLOCKS; ) {
    if (block.producer === null) return block;
    const header = block;
    built.unshift(header);
    if (solidHeightBy(producers, built) === header.number) return header;
    const parent = header.number === 1 ? genesis : await readAnyHeaderAt(deps, node, header.number - 1);
    checked(deps, node, () => {
      if (parent.id === header.parentId) return;
      throw refused(`block ${header.number} (${header.id}) names parent ${header.parentId}, not ${parent.id}`);
    });
    block = parent;
  }
  return checked(deps, node, () => {
    throw refused(`too few of its producers made the ${built.length} blocks up to ${newest.number} (${newest.id})`);
  });
}

function refused(message: string): AppError {
  return new AppError('BLOCK_UNVERIFIABLE', message, { retryable: true });
}
