import type { Tally, WrongRow } from './walk-rows.ts';

/** `wrong`: the first 100 rows that are not as they were sealed, or have no seal, or one of a key that is not at hand. */
export type SealsView = { good: boolean; tables: Tally[]; wrong: WrongRow[] };

/** `missing`: the inventory has it, and the ledger does not; `put-back`: it is sealed, and stands as no recorded action left it. */
export type AcceptedRowView = { table: string; id: string; was: WrongRow['kind'] | 'missing' | 'put-back' };
