import { createUnwatchedLook } from '../payments/troubles/find-unwatched.ts';
import { startTroubleWatch } from '../payments/troubles/trouble-alarms.ts';
import { createTroubles } from '../payments/troubles/troubles.ts';
import { createShortageWatch } from '../payments/troubles/watch-shortage.ts';
import { systemClock } from '../runtime/clock.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Context } from './context.ts';
import type { ServiceOptions } from './service-options.ts';

/** What hears of troubles before anything is started that may meet them. */
export function prepareTroubles({ log, clock = systemClock }: ServiceOptions): Pick<Context, 'troubles' | 'shortage'> {
  const troubles = createTroubles({ log });
  return { troubles, shortage: createShortageWatch({ troubles, now: clock.now }) };
}

/** In every process, whatever its roles: its clock and its way to the database are its own. */
export function startTroubles(context: Context): Loop {
  return startTroubleWatch({ ...context, looks: [context.shortage.look, createUnwatchedLook(context)] });
}
