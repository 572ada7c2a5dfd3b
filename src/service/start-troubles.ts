import { createUnwatchedLook } from '../payments/troubles/find-unwatched.ts';
import { startTroubleWatch } from '../payments/troubles/trouble-alarms.ts';
import type { Loop } from '../runtime/loop.ts';
import type { Context } from './context.ts';
import { patiently } from './patiently.ts';

/**
 * In every process, whatever its roles: its clock and its way to the database are its own. The clocks are compared before anything goes by
 * them.
 */
export async function startTroubles(context: Context): Promise<Loop> {
  const { clocks, shortage, db, log } = context;
  await patiently(log, () => clocks.look(db));
  return startTroubleWatch({
    ...context,
    looks: [clocks.look, shortage.look, createUnwatchedLook(context), context.liveness.look],
  });
}
