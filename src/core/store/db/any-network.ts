import { NETWORKS } from '../../domain/network.ts';

/** All values of `network`. It lets a statement about all networks use an index that begins with that column. */
export const ANY_NETWORK = `(${NETWORKS.map((network) => `'${network}'`).join(', ')})`;
