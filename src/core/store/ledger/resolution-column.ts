import { FORMER_RESOLUTIONS } from '../../domain/resolution.ts';

const CASES = Object.entries(FORMER_RESOLUTIONS).map(([former, kind]) => `when '${former}' then '${kind}'`);

/**
 * The SQL for the current name of the resolution in a row (`r.`) of `transfer_resolutions`. The row itself keeps the name with which it was
 * sealed.
 */
export const resolutionColumn = (row: string): string =>
  `case ${row}resolution ${CASES.join(' ')} else ${row}resolution end`;
