import { AppError } from '../../domain/errors.ts';
import type { Loop } from '../../runtime/loop.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { readPublicReceiptKeys } from '../../store/access/receipt-keys.ts';
import { findProducerSets } from '../../store/chain/producer-sets.ts';
import { LISTED, type Listed } from '../../store/ledger/inventory.ts';
import type { OutsideMark } from '../outside-mark.ts';
import { guardWhileLeading, type Leading, takeEach, whileLeading } from '../watching.ts';
import { compareSettings } from './compare-settings.ts';
import { keepAlarms } from './keep-alarms.ts';
import type { Keeping } from './keeping.ts';
import { countListed, listNewRows, lookAtYoung, lookOverPage } from './list-rows.ts';
import { lookAtDeliveries } from './look-at-deliveries.ts';
import { createSeenMark } from './seen-mark.ts';

/** What is wrong with the newest rows and with settings is found within a minute, also when several rounds fail. */
const PAUSE_MS = 10_000;
/** A tenth of the time at most: a look at the whole of a large ledger takes many rounds. */
const WORK_MS = 1000;

/** As many as change in a month. */
const MAX_PRODUCER_SETS = 100;

type Options = Leading & {
  random(bytes: number): Uint8Array;
  metrics: Metrics;
  mark: OutsideMark | null;
  pauseMs?: number;
  stallTickMs?: number;
};

/**
 * Keeps the inventory of a network while this process is its leader: lists the rows that came, looks whether those on the newest page are there
 * and as they were sealed, and then those on older ones, compares settings with how they stood, and keeps alarms open that nobody closed as they should. Does nothing where no rows are sealed.
 * What it saw is not forgotten while another process leads: whoever takes the lease away must not make it forget. Never ends by itself.
 */
export function startInventoryWatch(options: Options): Loop {
  const { network, isLeader, metrics, mark, pauseMs = PAUSE_MS } = options;
  const keeping: Keeping = {
    ...options,
    db: whileLeading(options.db, network, isLeader),
    seen: new Map(),
    young: new Map(),
    alarms: { open: [], audit: 0 },
  };
  const outside = createSeenMark(keeping, mark);
  let older = olderPages(keeping);
  const lookAtOlder = async (isOver: () => boolean) => {
    while (!isOver()) {
      const { value: place } = older.next();
      if (place === undefined) {
        older = olderPages(keeping);
        break;
      }
      await lookOverPage(keeping, place.subject, place.number);
    }
  };
  const look = async (shouldEnd: () => boolean) => {
    if ((await keeping.db.sealer()) === null) return;
    const end = performance.now() + WORK_MS;
    const isOver = () => shouldEnd() || performance.now() > end;
    await outside.read();
    const ofRows = LISTED.flatMap((subject) => [
      async () => {
        while ((await listNewRows(keeping, subject)) && !isOver());
        metrics.inventoryRows.set({ network, subject }, countListed(keeping, subject));
      },
      () => lookAtYoung(keeping, subject),
      () => lookOverPage(keeping, subject, lastPage(keeping, subject)),
    ]);
    await takeEach([
      () => keepAlarms(keeping),
      () => compareSettings(keeping),
      () => examine(() => readPublicReceiptKeys(keeping.db)),
      () => examine(() => findProducerSets(keeping.db, network, MAX_PRODUCER_SETS)),
      ...ofRows,
      () => lookAtDeliveries(keeping),
      () => lookAtOlder(isOver),
      () => outside.write(),
    ]);
  };
  const onFollower = () => {
    for (const subject of LISTED) metrics.inventoryRows.remove({ network, subject });
  };
  return guardWhileLeading(options, { ...options, name: 'inventory', pauseMs, onFollower }, look);
}

/** Reads rows that few ask for: that examines them, and one that is not as it was sealed is an alarm by then. */
async function examine(read: () => Promise<unknown>): Promise<void> {
  try {
    await read();
  } catch (error) {
    if (!(error instanceof AppError && error.code === 'ROW_CHANGED')) throw error;
  }
}

function* olderPages(keeping: Keeping): Generator<{ subject: Listed; number: number }, undefined> {
  for (const subject of LISTED) {
    for (let number = lastPage(keeping, subject) - 1; number > 0; number -= 1) yield { subject, number };
  }
}

/** 0: there is none. */
function lastPage({ seen }: Keeping, subject: Listed): number {
  return seen.get(subject)?.number ?? 0;
}
