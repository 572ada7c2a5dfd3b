import { hostname } from 'node:os';
import type { Network } from '../domain/network.ts';
import { unixMs } from '../domain/time.ts';
import { createTroubles, type Troubles } from '../payments/troubles/troubles.ts';
import { type ClockWatch, createClockWatch } from '../payments/troubles/watch-clocks.ts';
import { createShortageWatch, type ShortageWatch } from '../payments/troubles/watch-shortage.ts';
import { systemClock } from '../runtime/clock.ts';
import type { ServiceOptions } from './service-options.ts';

/** `troubles`: what this process knows to be wrong now. */
export type Known = { troubles: Troubles; shortage: ShortageWatch; clocks: ClockWatch };

/** What hears of troubles before anything is started that may meet them. */
export function prepareTroubles({ config, log, clock, comparesClocks = clock === undefined }: ServiceOptions): Known {
  const troubles = createTroubles({ log });
  const own = clock ?? systemClock;
  const given = { now: () => unixMs(own.now()), problem: () => null };
  const networks = Object.keys(config.networks) as Network[];
  const clocks = comparesClocks
    ? createClockWatch({ clock: own, troubles, networks, host: hostname() })
    : { clock: own, databaseClock: own, deadlineClock: given, certainNow: given.now, look: async () => undefined };
  return { troubles, shortage: createShortageWatch({ troubles, now: own.now }), clocks };
}
