import type { Alarm } from '../../store/chain/alarms.ts';
import type { Listed, Subject } from '../../store/ledger/inventory.ts';
import type { Leading } from '../leading.ts';

/** The state for keeping a network's inventory. `seen` is the end that this process last saw, to detect a reset to an earlier end. */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that this process has seen, but that are still too young to be listed. */
  young: Map<Listed, Set<string>>;
  /** The operator-closed alarms that were open at the last check, and the audit log's last entry at that time. */
  alarms: { open: readonly Alarm[]; audit: number };
};
