import type { Result } from './terminal.ts';

export type Print = (result: Promise<Result>) => Promise<void>;

export const PROJECT_OPTION = ['--project <prj_…>', 'project (default: the only one)'] as const;

/** `--allow-ip a,b --allow-ip c` is three entries. */
export function collect(text: string, previous: string[] | undefined): string[] {
  return [...(previous ?? []), ...text.split(',')];
}
