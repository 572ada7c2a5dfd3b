import type { Result } from './terminal.ts';

export type ProjectOption = { project?: string };

export type Print = (result: Promise<Result>) => Promise<void>;

export const PROJECT_OPTION = ['--project <prj_…>', 'the project; may be left out when there is only one'] as const;

export const NETWORK_OPTION = [
  '--network <network>',
  'mainnet, nile or devnet; may be left out when one is configured',
] as const;

/** `--allow-ip a,b --allow-ip c` is three entries. */
export function collect(text: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...text.split(',')];
}
