/**
 * The 48 tamperings of docs/contributing/tampering.md with their outcomes: `plain` with the rights of the service's own user, `owner` as
 * the owner of the tables, bypassing every trigger and reference. Addresses are signed and enforced, and seals are required.
 *
 * - `prevented`: the database, or a restore, refuses it.
 * - `harmless`: it changes nothing that is shown, paid or notified.
 * - `found`: the affected data is no longer shown, paid or notified, and within a minute an alarm names the row.
 */
export type Outcome = 'prevented' | 'harmless' | 'found' | 'silent';
export type Group = 'orders' | 'settings' | 'told' | 'chain' | 'schema' | 'storage';
type Line = readonly [number: number, group: Group, what: string, plain: Outcome, owner: Outcome, happens: string];

export const FORTY_EIGHT: readonly Line[] = [
  [
    1,
    'orders',
    'text of an address',
    'prevented',
    'found',
    'shown nowhere (503); the page says not to pay; its payments wait',
  ],
  [2, 'orders', 'text and account of an address', 'prevented', 'found', 'the same, also by the manifest'],
  [3, 'settings', 'an address into the pool', 'found', 'found', 'no order gets it'],
  [
    4,
    'settings',
    'the honest addresses out of the pool',
    'found',
    'found',
    'with no honest one left, no order is made (409)',
  ],
  [
    5,
    'orders',
    'address of an order',
    'prevented',
    'found',
    'the order is shown nowhere (503); the page says not to pay',
  ],
  [6, 'orders', 'what is to be paid', 'prevented', 'found', 'the same'],
  [7, 'orders', 'what was asked for', 'prevented', 'found', 'the same'],
  [8, 'orders', 'links of two orders swapped', 'prevented', 'found', 'neither is shown'],
  [9, 'orders', 'deadline of an order', 'prevented', 'found', 'as 5; a local network seals no deadlines'],
  [10, 'orders', '`PAID` alone', 'prevented', 'found', 'shown nowhere; no receipt is signed'],
  [11, 'orders', '`PAID` with a transfer that never was', 'found', 'found', 'the same'],
  [
    12,
    'orders',
    'a payment deleted, `PAID` taken back',
    'prevented',
    'found',
    'alarm `rows-missing`; `reconcile` finds it too',
  ],
  [13, 'orders', '`PAID` left, the transfer kept', 'prevented', 'found', 'alarm `row-changed`'],
  [14, 'orders', 'an order deleted', 'prevented', 'found', 'alarm `rows-missing`'],
  [15, 'told', 'an event made up', 'found', 'found', 'sent to no one; the feed answers 503'],
  [16, 'told', 'an event rewritten', 'prevented', 'found', 'the feed answers 503'],
  [17, 'settings', 'an API key inserted', 'found', 'found', '401'],
  [18, 'settings', 'the digest of an API key replaced', 'prevented', 'found', '401'],
  [
    19,
    'settings',
    'a revocation taken back',
    'prevented',
    'found',
    '401; a copy with its seal works until someone acts',
  ],
  [20, 'settings', 'the URL of a webhook', 'found', 'found', 'nothing is sent there; deliveries wait'],
  [21, 'settings', 'a URL of the own network', 'found', 'found', 'the same'],
  [22, 'settings', 'a sealed secret moved', 'found', 'found', 'deliveries wait, alarm `secret-damaged`'],
  [23, 'settings', 'a sealed secret ended or deleted', 'found', 'found', 'the same'],
  [
    24,
    'settings',
    'a secret planted as plain text',
    'prevented',
    'found',
    'no plain text signs; alarm `schema-changed`',
  ],
  [25, 'told', 'a receipt key inserted', 'found', 'found', 'the list of keys is not published'],
  [
    26,
    'told',
    'what operators did made up, or changed',
    'found',
    'found',
    'alarm `audit-broken`; `quittance audit verify` fails',
  ],
  [27, 'told', 'an alarm closed', 'found', 'found', 'raised again, unless an operator is on record'],
  [28, 'told', 'an alarm made up', 'found', 'found', 'its words are shown to no one'],
  [29, 'settings', 'links of a project', 'found', 'found', 'its pages are not shown; its keys create no order'],
  [30, 'settings', 'a script as a link', 'found', 'found', 'the same'],
  [31, 'settings', 'markup in a name', 'found', 'found', 'the same'],
  [32, 'settings', 'markup as a logo', 'found', 'found', 'the same; a wrong logo is shown nowhere'],
  [33, 'settings', 'policy or surcharge', 'found', 'found', 'as 29, also by the manifest'],
  [34, 'chain', 'status of the chain', 'harmless', 'harmless', 'written again within seconds'],
  [35, 'chain', 'a lease', 'harmless', 'harmless', 'taken back within seconds'],
  [36, 'schema', 'the mark of a closed ledger', 'prevented', 'found', 'no start until it is opened again'],
  [37, 'schema', 'the trigger of a closed ledger', 'prevented', 'found', 'no orders (503); existing ones stay'],
  [38, 'chain', 'hints', 'harmless', 'harmless', 'another try finds a free amount'],
  [39, 'chain', 'a set of producers inserted', 'found', 'found', 'the watcher believes none'],
  [
    40,
    'chain',
    'sets of producers deleted',
    'prevented',
    'harmless',
    'read again from agreeing nodes; no alarm says so',
  ],
  [41, 'settings', 'an account key inserted', 'found', 'found', 'nothing is derived from it'],
  [42, 'chain', 'the cursor moved', 'prevented', 'found', 'the watcher stops and says so'],
  [43, 'schema', 'a trigger dropped', 'prevented', 'found', 'no start; alarm `schema-changed`'],
  [44, 'schema', 'a trigger emptied', 'prevented', 'found', 'no start; alarm `schema-changed`'],
  [45, 'schema', 'a trigger planted', 'prevented', 'found', 'no start; alarm `schema-changed`'],
  [46, 'schema', 'a unique constraint dropped', 'prevented', 'found', 'no start; alarm `schema-changed`'],
  [47, 'schema', 'triggers left disabled', 'prevented', 'found', 'no start; alarm `schema-changed`'],
  [48, 'storage', 'a backup edited', 'prevented', 'prevented', 'not restored (`BACKUP_TAMPERED`)'],
];

const noRight = (to: string) => new RegExp(`^42501 (permission denied for|must be owner of) ${to}$`);
const KEPT_PAID = /^23514 invoice .* is PAID, and PAID is never left$/;

/** The expected refusal of each prevented tampering, so that a mistake in a statement doesn't count. */
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
