import { type Static, Type } from '../../runtime/type.ts';

const counted = Type.Object({ count: Type.Integer(), amount: Type.String() });

/**
 * What moved in some time. `paid`: so many invoices, which asked for `requested` and for which `received` came; `late` are those of them
 * that came after the deadline. `duplicate` and `unmatched` came too, and paid nothing. `out` left the addresses.
 */
const sums = {
  paid: Type.Integer(),
  ...{ requested: Type.String(), received: Type.String(), tails: Type.String() },
  ...{ late: counted, duplicate: counted, unmatched: counted, out: counted },
};
const ReportSums = Type.Object(sums);
export type ReportSums = Static<typeof ReportSums>;

/** Days are those of UTC, `2026-11-01`; `to` belongs to the report. Days and months in which nothing moved are left out. */
export const ReportView = Type.Object({
  ...{ projectId: Type.String(), network: Type.String(), from: Type.String(), to: Type.String() },
  days: Type.Array(Type.Object({ day: Type.String(), ...sums })),
  months: Type.Array(Type.Object({ month: Type.String(), ...sums })),
  total: ReportSums,
  /**
   * What the ledger says that the addresses held: `start` + `came` − `left` = `end`. `uncompared`: so many addresses were never compared
   * with the chain, and what they held before the ledger knew them is not in it.
   */
  balance: Type.Object({
    ...{ start: Type.String(), came: Type.String(), left: Type.String(), end: Type.String() },
    uncompared: Type.Integer(),
  }),
});
export type ReportView = Static<typeof ReportView>;
export type ReportDay = ReportView['days'][number];
