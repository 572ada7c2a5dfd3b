import type { Alarm } from '../../store/chain/alarms.ts';
import type { Listed, Subject } from '../../store/ledger/inventory.ts';
import type { Leading } from '../leading.ts';

/**
 * The state for keeping a network's inventory. `seen` is the inventory's end as this process last saw it, so that a reset to an earlier end
 * is detected.
 */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that this process has seen, but that are still too young to be listed. */
  young: Map<Listed, Set<string>>;
  /** The operator-closed alarms that were open at the last check, and the audit log's last entry at that time. */
  alarms: { open: readonly Alarm[]; audit: number };
};
