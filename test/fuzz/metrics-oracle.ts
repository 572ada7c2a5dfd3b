import type { Oracle } from './oracle.ts';
import type { WireResponse } from './read-responses.ts';

/**
 * All that the internal port says: a page of figures, that it lives, that there is nothing, or that bytes are no HTTP; 413 is Node's word
 * for extensions of chunks that are longer than 16 KB.
 */
const STATUSES = new Set([200, 400, 404, 413, 417, 431]);

/** Judges answers of the port for operators. It is for their own network, and says no more than Node does of what it cannot read. */
export function createMetricsOracle(secrets: readonly string[]): Oracle {
  const judgeAny = ({ status, body }: WireResponse) => {
    if (!STATUSES.has(status)) throw new Error(`the status is ${status}`);
    if (secrets.some((secret) => body.includes(secret))) throw new Error('a key stands in the figures');
  };
  return { isComplete: false, judgeAny, judge: (_shot, response) => judgeAny(response) };
}
