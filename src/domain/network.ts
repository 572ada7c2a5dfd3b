/** The TRON networks a project can belong to. A project keeps its network for life. */
export const NETWORKS = ['mainnet', 'nile', 'devnet'] as const;
export type Network = (typeof NETWORKS)[number];

/** The one network name and the one asset name on the wire. Which TRON network it is follows from the key. */
export const WIRE_NETWORK = 'TRON';
export const WIRE_ASSET = 'USDT';

export function isNetwork(text: string): text is Network {
  return (NETWORKS as readonly string[]).includes(text);
}

/** Live keys move real money; every other network is for tests. */
export function keyMode(network: Network): 'live' | 'test' {
  return network === 'mainnet' ? 'live' : 'test';
}
