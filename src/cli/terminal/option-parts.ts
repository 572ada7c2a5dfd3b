import type { Network } from '../../domain/network.ts';
import type { Result } from './terminal.ts';

export type Print = (result: Promise<Result>) => Promise<void>;

export const PROJECT_OPTION = ['--project <prj_…>', 'the project; may be left out when there is only one'] as const;

/** Only the type of a network is imported, so that showing help stays quick. */
const NETWORKS: Readonly<Record<Network, true>> = { mainnet: true, nile: true, devnet: true };

/** `mainnet, nile or devnet` */
export const NETWORK_CHOICE = Object.keys(NETWORKS)
  .join(', ')
  .replace(/, (?=\w+$)/, ' or ');

export const NETWORK_OPTION = [
  '--network <network>',
  `${NETWORK_CHOICE}; may be left out when one is configured`,
] as const;

/** `--allow-ip a,b --allow-ip c` is three entries. */
export function collect(text: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...text.split(',')];
}
