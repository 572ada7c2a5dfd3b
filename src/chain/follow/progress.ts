import type { ChainStatus } from '../../store/chain/status.ts';
import { ownSolidOf } from './finalize.ts';
import { type FollowDeps, type Following, tipOf } from './following.ts';

/** The log tells of progress this often. */
const LOG_MS = 10_000;
/** Requests a block are told over at least as many blocks as show what is usual. */
const MEASURED_BLOCKS = 20;

/** Watches how far a follower is and how fast: for metrics, the log, and the status that other processes read. */
export function createProgress({ network, metrics, log, pool }: FollowDeps) {
  let run: { startedMs: number; from: number; loggedMs: number } | null = null;
  let catchUp: ChainStatus['catchUp'] = null;
  const head = { requests: 0, blocks: 0, requestsPerBlock: null as number | null };
  const countRequests = () => pool.health().reduce((sum, { requests }) => sum + requests, 0);
  const setGauges = (following: Following) => {
    metrics.chainHeadNumber.set({ network }, tipOf(following).number);
    metrics.chainOwnSolidNumber.set({ network }, ownSolidOf(following));
    metrics.chainProcessedNumber.set({ network }, following.base.number);
    metrics.chainLagBlocks.set({ network }, Math.max(0, following.nodeSolid.number - following.base.number));
    metrics.chainCatchUpRate.set({ network }, catchUp?.blocksPerSecond ?? 0);
    metrics.chainCatchUpSeconds.set({ network }, catchUp?.secondsLeft ?? 0);
  };
  return {
    /** Blocks are read in ranges from now on, so that the first one tells a rate. */
    onBehind: (following: Following) => {
      const nowMs = performance.now();
      run ??= { startedMs: nowMs, from: following.base.number, loggedMs: nowMs };
    },
    /** A range was recorded while catching up. */
    onCatchUp: (following: Following) => {
      if (run === null) return;
      const nowMs = performance.now();
      head.blocks = 0;
      const blocksPerSecond = (following.base.number - run.from) / Math.max(0.001, (nowMs - run.startedMs) / 1000);
      const left = following.nodeSolid.number - following.base.number;
      const rounded = Math.round(blocksPerSecond * 10) / 10;
      // While blocks wait there is no rate to tell.
      const isKnown = rounded > 0 && left > 0;
      catchUp = {
        blocksPerSecond: isKnown ? rounded : null,
        secondsLeft: isKnown ? Math.ceil(left / blocksPerSecond) : null,
      };
      setGauges(following);
      if (nowMs - run.loggedMs < LOG_MS) return;
      run.loggedMs = nowMs;
      const rate = isKnown ? catchUp : {};
      log.info({ processed: following.base.number, left, ...rate }, 'catching up with the chain');
    },
    /** The head was looked at, and so many blocks were new. */
    onHead: (following: Following, added: number) => {
      if (run !== null) log.info({ processed: following.base.number }, 'caught up with the chain');
      run = null;
      catchUp = null;
      if (head.blocks === 0) head.requests = countRequests();
      head.blocks += added;
      if (head.blocks > MEASURED_BLOCKS) {
        head.requestsPerBlock = Math.round(((countRequests() - head.requests) / head.blocks) * 100) / 100;
        head.blocks = 0;
      }
      setGauges(following);
    },
    status: (following: Following): Omit<ChainStatus, 'blind' | 'nodes'> => ({
      headNumber: tipOf(following).number,
      ownSolidNumber: ownSolidOf(following),
      nodeSolidNumber: following.nodeSolid.number,
      processedNumber: following.base.number,
      catchUp,
      openBlock: openBlockOf(following),
      requestsPerBlock: head.requestsPerBlock,
    }),
  };
}

function openBlockOf(following: Following): number | null {
  const limit = Math.min(ownSolidOf(following), following.nodeSolid.number);
  return following.window.find(({ agreed, number }) => agreed === null && number <= limit)?.number ?? null;
}
