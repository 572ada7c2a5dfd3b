import { FORMER_RESOLUTIONS } from '../../domain/resolution.ts';

const CASES = Object.entries(FORMER_RESOLUTIONS).map(([former, kind]) => `when '${former}' then '${kind}'`);

/**
 * The SQL for the current name of the resolution in a `transfer_resolutions` row (`r.`). The row itself keeps the name that it was sealed
 * with.
 */
export const resolutionColumn = (row: string): string =>
  `case ${row}resolution ${CASES.join(' ')} else ${row}resolution end`;
