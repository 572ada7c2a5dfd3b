/**
 * The 48 tamperings of docs/explained/security.md, and what comes of each: `plain` with the rights of the service's own user, `owner` as the owner of the
 * tables, past every trigger and reference. Addresses are signed and enforced, and seals are required.
 *
 * - `prevented`: the database, or a restore, refuses it.
 * - `harmless`: it changes nothing that anybody is shown, paid or told.
 * - `found`: what it concerns is shown, paid and told nowhere, and within a minute an alarm names the row.
 */
export type Outcome = 'prevented' | 'harmless' | 'found' | 'silent';
export type Group = 'orders' | 'settings' | 'told' | 'chain' | 'schema' | 'storage';
type Line = readonly [number: number, group: Group, what: string, plain: Outcome, owner: Outcome];

export const FORTY_EIGHT: readonly Line[] = [
  [1, 'orders', 'text of an address', 'prevented', 'found'],
  [2, 'orders', 'text and account of an address', 'prevented', 'found'],
  [3, 'settings', 'an address into the pool', 'found', 'found'],
  [4, 'settings', 'the honest addresses out of the pool', 'found', 'found'],
  [5, 'orders', 'address of an order', 'prevented', 'found'],
  [6, 'orders', 'what is to be paid', 'prevented', 'found'],
  [7, 'orders', 'what was asked for', 'prevented', 'found'],
  [8, 'orders', 'links of two orders swapped', 'prevented', 'found'],
  [9, 'orders', 'deadline of an order', 'prevented', 'found'],
  [10, 'orders', '`PAID` alone', 'prevented', 'found'],
  [11, 'orders', '`PAID` with a transfer that never was', 'found', 'found'],
  [12, 'orders', 'a payment deleted, `PAID` taken back', 'prevented', 'found'],
  [13, 'orders', '`PAID` left, the transfer kept', 'prevented', 'found'],
  [14, 'orders', 'an order deleted', 'prevented', 'found'],
  [15, 'told', 'an event made up', 'found', 'found'],
  [16, 'told', 'an event rewritten', 'prevented', 'found'],
  [17, 'settings', 'an API key inserted', 'found', 'found'],
  [18, 'settings', 'the digest of an API key replaced', 'prevented', 'found'],
  [19, 'settings', 'a revocation taken back', 'prevented', 'found'],
  [20, 'settings', 'the URL of a webhook', 'found', 'found'],
  [21, 'settings', 'a URL of the own network', 'found', 'found'],
  [22, 'settings', 'a sealed secret moved', 'found', 'found'],
  [23, 'settings', 'a sealed secret ended or deleted', 'found', 'found'],
  [24, 'settings', 'a secret planted as plain text', 'prevented', 'found'],
  [25, 'told', 'a receipt key inserted', 'found', 'found'],
  [26, 'told', 'what operators did made up, or changed', 'found', 'found'],
  [27, 'told', 'an alarm closed', 'found', 'found'],
  [28, 'told', 'an alarm made up', 'found', 'found'],
  [29, 'settings', 'links of a project', 'found', 'found'],
  [30, 'settings', 'a script as a link', 'found', 'found'],
  [31, 'settings', 'markup in a name', 'found', 'found'],
  [32, 'settings', 'markup as a logo', 'found', 'found'],
  [33, 'settings', 'policy or surcharge', 'found', 'found'],
  [34, 'chain', 'status of the chain', 'harmless', 'harmless'],
  [35, 'chain', 'a lease', 'harmless', 'harmless'],
  [36, 'schema', 'the mark of a closed ledger', 'prevented', 'found'],
  [37, 'schema', 'the trigger of a closed ledger', 'prevented', 'found'],
  [38, 'chain', 'hints', 'harmless', 'harmless'],
  [39, 'chain', 'a set of producers inserted', 'found', 'found'],
  [40, 'chain', 'sets of producers deleted', 'prevented', 'harmless'],
  [41, 'settings', 'an account key inserted', 'found', 'found'],
  [42, 'chain', 'the cursor moved', 'prevented', 'found'],
  [43, 'schema', 'a trigger dropped', 'prevented', 'found'],
  [44, 'schema', 'a trigger emptied', 'prevented', 'found'],
  [45, 'schema', 'a trigger planted', 'prevented', 'found'],
  [46, 'schema', 'a unique constraint dropped', 'prevented', 'found'],
  [47, 'schema', 'triggers left disabled', 'prevented', 'found'],
  [48, 'storage', 'a backup edited', 'prevented', 'prevented'],
];

const noRight = (to: string) => new RegExp(`^42501 (permission denied for|must be owner of) ${to}$`);
const KEPT_PAID = /^23514 invoice .* is PAID, and PAID is never left$/;

/** By what each is refused that is prevented, so that a mistake in a statement does not count as that. */
export const REFUSED_BY: Readonly<Record<'plain' | 'owner', Readonly<Record<number, RegExp>>>> = {
  plain: {
    ...{ 1: noRight('table addresses'), 2: noRight('table addresses'), 47: noRight('table addresses') },
    ...{ 5: noRight('table invoices'), 6: noRight('table invoices'), 7: noRight('table invoices') },
    ...{ 8: noRight('table invoices'), 9: noRight('table invoices'), 14: noRight('table invoices') },
    ...{
      10: /^23514 invoice .* with 0 more events: each change of its status is one event$/,
      12: KEPT_PAID,
      13: KEPT_PAID,
    },
    ...{ 16: noRight('table events'), 18: noRight('table api_keys'), 24: noRight('table webhook_endpoints') },
    19: /^23514 revoked_at of api_keys never goes back$/,
    ...{ 36: noRight('table ledger_identity'), 37: noRight('table invoices'), 46: noRight('table invoices') },
    ...{ 40: noRight('table producer_sets'), 43: noRight('relation transfers') },
    ...{ 44: noRight('schema public'), 45: noRight('schema public') },
    42: /^23514 chain_cursors_move_whole$/,
    48: /^BACKUP_TAMPERED$/,
  },
  owner: { 48: /^BACKUP_UNAUTHENTICATED$/ },
};
