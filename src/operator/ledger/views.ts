import type { Tally, WrongRow } from './walk-rows.ts';

/** `wrong`: the first 100 rows that are not as they were sealed, or have no seal, or one of a key that is not at hand. */
export type SealsView = { good: boolean; tables: Tally[]; wrong: WrongRow[] };

export type AcceptedRowView = { table: string; id: string; was: WrongRow['kind'] };
