import { NETWORKS } from '../../domain/network.ts';

/** All values of `network`. With these values, a statement about all networks can use an index that starts with the column `network`. */
export const ANY_NETWORK = `(${NETWORKS.map((network) => `'${network}'`).join(', ')})`;
