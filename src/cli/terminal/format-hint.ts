import type { Hint } from '../../operator/hint.ts';

/** `quittance chain rescan --from 1 --to 2`. */
export function formatHint({ command, args }: Hint): string {
  return `quittance ${[command, ...args].join(' ')}`;
}
