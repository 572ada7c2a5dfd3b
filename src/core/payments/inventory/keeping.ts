import type { Alarm } from '../../store/chain/alarms.ts';
import type { Listed, Subject } from '../../store/ledger/inventory.ts';
import type { Leading } from '../watching.ts';

/** What is needed to keep a network's inventory. `seen` is where this process last saw it end, to detect a reset to an earlier end. */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that this process has seen, but that are still too young to be listed. */
  young: Map<Listed, Set<string>>;
  /**
   * Of the alarms that only operators can close: the ones that were open at the last check, and the last entry of the audit log at that
   * time.
   */
  alarms: { open: readonly Alarm[]; audit: number };
};
