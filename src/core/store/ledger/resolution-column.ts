import { FORMER_RESOLUTIONS } from '../../domain/resolution.ts';

const CASES = Object.entries(FORMER_RESOLUTIONS).map(([former, kind]) => `when '${former}' then '${kind}'`);

/** SQL: the resolution of a row (`r.`) of `transfer_resolutions` under its present name. A row keeps the name that it was sealed with. */
export const resolutionColumn = (row: string): string =>
  `case ${row}resolution ${CASES.join(' ')} else ${row}resolution end`;
