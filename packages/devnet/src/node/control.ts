import type { Ledger } from '../chain/ledger.ts';
import { markOf } from '../chain/mine.ts';
import { booleanParameter, integerParameter, type Parameters, textParameter } from '../chain/parameters.ts';
import { isLoopback } from './foreign-request.ts';

/** Only a local network accepts this request; real nodes don't know it. */
export const CONTROL_PATH = '/devnet/fork';

export interface ControlAnswer {
  readonly status: 200 | 403 | 409;
  readonly body: object;
}

/**
 * Orphans the last `depth` blocks, or all blocks from the one that contains `transactionId` on. `keepTransactions` is the same as in
 * `Devnet.fork`, but its default is false. With `keepOthers`, only the given transaction is dropped. Example:
 * `{"transactionId":"0ca1…c8ae"}` → `{"orphaned":2,"head":{"number":57,"id":"…","timestampMs":…}}`. If that isn't possible, responds with
 * status 409 and `error`.
 */
export function forkOnRequest(ledger: Ledger, slotMs: number, parameters: Parameters): ControlAnswer {
  const transactionId = textParameter(parameters, 'transactionId');
  const height = ledger.view('full').transaction(transactionId)?.block.header.number;
  if (transactionId !== '' && height === undefined)
    return refused(`no block contains the transaction ${transactionId}`);
  const depth = height === undefined ? integerParameter(parameters, 'depth') : ledger.head().header.number - height + 1;
  try {
    const forgets = booleanParameter(parameters, 'keepOthers') ? { forget: transactionId } : {};
    const keepTransactions = 'forget' in forgets || booleanParameter(parameters, 'keepTransactions');
    ledger.fork({ depth, keepTransactions, ...forgets, stepMs: slotMs });
  } catch (error) {
    if (error instanceof RangeError) return refused(error.message);
    throw error;
  }
  return { status: 200, body: { orphaned: depth, head: markOf(ledger, ledger.head().header.number) } };
}

/** Whether a connection was made over the loopback interface. */
export function isFromThisMachine(remoteAddress: string | undefined): boolean {
  return isLoopback(remoteAddress?.replace(/^::ffff:/, '') ?? '');
}

function refused(error: string): ControlAnswer {
  return { status: 409, body: { error } };
}
