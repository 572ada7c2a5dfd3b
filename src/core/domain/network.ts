/** The TRON networks. A project can never change its network. */
export const NETWORKS = ['mainnet', 'nile', 'devnet'] as const;
export type Network = (typeof NETWORKS)[number];

/** `mainnet, nile or devnet` */
export const NETWORK_CHOICE = NETWORKS.join(', ').replace(/, (?=\w+$)/, ' or ');

/** The network with real money. Only code that is specific to this network should use this type. */
type LiveNetwork = 'mainnet';
/** A network that the user runs, so it has its own first block and block time. */
type LocalNetwork = 'devnet';
type Kind<Each> = Each extends LiveNetwork ? 'live' : Each extends LocalNetwork ? 'local' : 'test';

const KINDS: Readonly<{ [Each in Network]: Kind<Each> }> = {
  mainnet: 'live',
  nile: 'test',
  devnet: 'local',
};

/** The only network name and the only asset name in the API. The API key determines which TRON network it is. */
export const WIRE_NETWORK = 'TRON';
export const WIRE_ASSET = 'USDT';

export function isNetwork(text: string): text is Network {
  return (NETWORKS as readonly string[]).includes(text);
}

export function isLocalNetwork(network: Network): network is LocalNetwork {
  return KINDS[network] === 'local';
}

/** The environment variable that lists the network's nodes. */
export function nodesVariable(network: Network): string {
  return `QUITTANCE_${network.toUpperCase()}_NODES`;
}

/** Live keys are for real money; all other networks are for tests. */
export function keyMode(network: Network): 'live' | 'test' {
  return KINDS[network] === 'live' ? 'live' : 'test';
}
