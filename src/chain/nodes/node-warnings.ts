import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Substitutable } from './question.ts';

/** A sick node is worth a line when its row of failures begins and then this often, so that an outage does not fill the disk. */
const REPEAT_LOG_MS = 60_000;
const BUDGET_WARNING_SHARE = 0.8;
const DAY_MS = 24 * 60 * 60_000;

const SUBSTITUTES = { logs: 'infos', ranges: 'single blocks', bytes: 'JSON' } as const;

type WarningOptions = { network: Network; origin: string; log: Logger; now(): UnixMs; clockMs(): number };

/** Writes the log lines about one node, each at most so often. */
export function createNodeWarnings({ network, origin, log, now, clockMs }: WarningOptions) {
  const labels = { network, node: origin };
  let pausedLoggedMs = Number.NEGATIVE_INFINITY;
  const asideLoggedMs = new Map<Substitutable, number>();
  let warnedDay = -1;
  let exhaustedDay = -1;
  return {
    paused: (reason: string, pausedForMs: number, failures: number) => {
      if (failures > 1 && clockMs() - pausedLoggedMs < REPEAT_LOG_MS) return;
      pausedLoggedMs = clockMs();
      log.warn({ ...labels, reason, pausedForMs: Math.ceil(pausedForMs), failures }, 'a node is paused');
    },
    aside: (kind: Substitutable, reason: string, pausedForMs: number, failures: number) => {
      const lastMs = asideLoggedMs.get(kind) ?? Number.NEGATIVE_INFINITY;
      if (failures > 1 && clockMs() - lastMs < REPEAT_LOG_MS) return;
      asideLoggedMs.set(kind, clockMs());
      const line = { ...labels, kind, reason, pausedForMs: Math.ceil(pausedForMs), failures };
      log.warn(line, `a node does not show ${kind}: Quittance asks it for ${SUBSTITUTES[kind]} instead`);
    },
    recovered: () => log.info(labels, 'a node is well again'),
    /** `usedShare` of the day's requests; `null` without a limit. */
    budget: (usedShare: number | null) => {
      if (usedShare === null || usedShare < BUDGET_WARNING_SHARE) return;
      const today = Math.floor(now() / DAY_MS);
      const usedPercent = Math.floor(usedShare * 100);
      if (today !== warnedDay) log.warn({ ...labels, usedPercent }, "most of a node's requests of the day are used");
      warnedDay = today;
      if (usedShare < 1 || today === exhaustedDay) return;
      exhaustedDay = today;
      log.error(
        labels,
        "a node's requests of the day are used up: it rests until midnight UTC; add a node or raise #daily=",
      );
    },
  };
}
