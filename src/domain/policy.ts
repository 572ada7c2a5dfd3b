/** How the invoices of one amount are told apart: by a tail on a shared address, or by an address of their own. */
export const POLICIES = ['tail', 'exact'] as const;

export type Policy = (typeof POLICIES)[number];
