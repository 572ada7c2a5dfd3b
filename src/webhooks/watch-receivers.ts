import { encodeId } from '../domain/ids.ts';
import { toIso, type UnixMs, unixMs } from '../domain/time.ts';
import { parseUrl } from '../domain/url.ts';
import type { Logger } from '../runtime/log.ts';
import { type Loop, startLoop } from '../runtime/loop.ts';
import type { LoopHealth } from '../runtime/loop-health.ts';
import { settleAlarms } from '../store/chain/tell-alarms.ts';
import type { Database } from '../store/db/database.ts';
import { findLongFailingCallbacks, findLongFailingEndpoints } from '../store/outbox/endpoint-health.ts';

type Deps = { db: Database; now(): UnixMs; log: Logger; checkMs?: number; loops?: LoopHealth };

/** Receivers restart, and are repaired, within less. */
const FAILING_MS = 15 * 60_000;
const CHECK_MS = 15_000;

/**
 * Raises an alarm for each endpoint at which every attempt of 15 minutes failed, and ends it with the first that is delivered; and for each
 * adapter of which an order has not been told for so long, until all such orders are. Any number of processes may do so.
 */
export function startReceiverWatch({ db, now, log, loops, checkMs = CHECK_MS }: Deps): Loop {
  return startLoop({
    name: 'watch of receivers',
    log,
    health: loops,
    maxPauseMs: CHECK_MS,
    run: async () => {
      const failing = await findFailing(db, unixMs(Math.max(0, now() - FAILING_MS)));
      await settleAlarms({ db, log }, 'webhook-failing', failing, { isOnce: true });
      return checkMs;
    },
  });
}

async function findFailing(db: Database, before: UnixMs) {
  const endpoints = await findLongFailingEndpoints(db, before);
  const callbacks = await findLongFailingCallbacks(db, before);
  return [
    ...endpoints.map(({ id, network, url, failingSince }) => {
      const subject = encodeId('whe', id);
      // Path and query of the URL may hold a token.
      const origin = parseUrl(url)?.origin ?? 'invalid URL';
      const detail = `Every attempt to the webhook endpoint ${subject} (${origin}) has failed since ${toIso(failingSince)}. Its events wait. What is wrong: quittance webhook test ${subject}`;
      return { subject, network, detail };
    }),
    ...callbacks.map(({ endpointId, network, count, eventId, failingSince, error }) => {
      const subject = encodeId('whe', endpointId);
      const orders = count === 1 ? 'One paid order' : `${count} paid orders`;
      const detail = `${orders} of the adapter ${subject} could not be reported to the shop for more than 15 minutes; callbacks of other orders continue. The first has waited since ${toIso(failingSince)}, and its last attempt ended with ${error}. See every attempt: quittance deliveries show ${encodeId('evt', eventId)}`;
      return { subject, network, detail };
    }),
  ];
}
