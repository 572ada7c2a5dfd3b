import type { Alarm } from '../../store/chain/alarms.ts';
import type { Listed, Subject } from '../../store/ledger/inventory.ts';
import type { Leading } from '../watching.ts';

/**
 * The needs of who keeps the inventory of a network. `seen`: where this process saw it end, so that who puts back an earlier end of it is
 * noticed.
 */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that are too young to be listed, as this process saw them. */
  young: Map<Listed, Set<string>>;
  /** The alarms that were open at the last look, of those that only operators close, and the last entry of the audit log then. */
  alarms: { open: readonly Alarm[]; audit: number };
};
