import { NETWORKS } from '../../domain/network.ts';

/** The values of `network`, for a statement that asks on all of them and is answered by an index that begins with it. */
export const ANY_NETWORK = `(${NETWORKS.map((network) => `'${network}'`).join(', ')})`;
