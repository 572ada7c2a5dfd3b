import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import { headerAt } from '../nodes/ask-block.ts';
import type { Node } from '../nodes/node.ts';
import { type ProvenHeader, readBlockId } from '../proof/prove-block.ts';
import { type KnownProducers, solidHeightBy } from './producers.ts';
import { checked, type Genesis, type ReadDeps, readAnyHeaderAt, readHeaderAt, type SolidHeader } from './read-block.ts';

/** How far the clock of the server that created the first invoice can be ahead of the chain. Much more than real clock drift. */
const CLOCK_MARGIN_MS = 10 * 60_000;
/** The first step back from the irreversible block when searching for an old enough block: a little more than the margin. */
const FIRST_STEP_BLOCKS = 250;
/** Maximum number of headers to read in order to find the producers that built on the starting block: four rounds of 27 producers. */
const MAX_BUILT_BLOCKS = 108;

/** Reads block 0 of the node's network. Costs one request. Errors: `NODE_REFUSED`, `BLOCK_UNVERIFIABLE`. */
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
 * Returns the block from which a new network is followed. Normally it's `built`, which is irreversible. If invoices were created while no
 * node was answering, it's the newest block that is certainly older than the first invoice, so that no payment is missed. Costs two
 * requests for each doubling of the distance, and eight more. Errors: as for `readHeaderAt`.
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
  // Go back no further than necessary, because not every node has all blocks since block 0.
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
 * Returns the newest block, `newest` or an earlier one, that is irreversible judging by the producers that built on it up to `newest`. A
 * node may call a block irreversible and then replace it a moment later, and a ledger that starts at such a block would never match the
 * chain. Costs one request per block: 18 if all 27 producers take their turns. Errors: as for `readAnyHeaderAt`, and `BLOCK_UNVERIFIABLE`
 * if the headers don't form a chain or too few known producers built within the limit.
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
