/** A place at which a process ends itself; failpoints.mjs explains the parts. */
export type Failpoint = {
  when: 'before' | 'during' | 'after';
  what: string;
  having?: string;
  nth?: number;
  signal?: 'SIGKILL' | 'SIGSTOP';
};

const ALL = ['before', 'during', 'after'] as const;

function places(whens: readonly Failpoint['when'][], what: string, having?: string): Failpoint[] {
  return whens.map((when) => ({ when, what, ...(having === undefined ? {} : { having }) }));
}

/** Places where a crash could lose or duplicate something: around every write in an invoice's life, and its commit. */
export const FAILPOINTS: readonly Failpoint[] = [
  // Creating: the only statement, and the answer.
  ...places(ALL, 'invoice-insert'),
  ...places(['before', 'after'], '201'),
  // Detecting: head blocks, sightings, CONFIRMING.
  ...places(['after'], 'head-block-insert'),
  ...places(['before', 'after'], 'sighting-insert'),
  ...places(ALL, 'commit', 'sighting-insert'),
  // Replacing a branch, which removes its sightings.
  ...places(['after'], 'head-block-delete-above'),
  ...places(['before', 'after'], 'commit', 'head-block-delete-above'),
  // Applying solid blocks: each part, and the commit that combines them.
  ...places(['after'], 'chain-cursor-lock'),
  ...places(['before', 'after'], 'transfer-insert'),
  ...places(['after'], 'head-block-delete-up-to'),
  ...places(['after'], 'chain-cursor-update'),
  ...places(['before', 'after'], 'invoice-update-status'),
  ...places(['after'], 'event-insert'),
  ...places(['after'], 'delivery-insert'),
  ...places(ALL, 'commit', 'transfer-insert'),
  ...places(ALL, 'commit', 'chain-cursor-update'),
  // Expiring.
  ...places(['after'], 'invoice-overdue-select'),
  ...places(ALL, 'commit', 'invoice-overdue-select'),
  // The watcher's leases.
  ...places(['before', 'after'], 'lease-acquire'),
  ...places(['after'], 'lease-renew'),
  // Delivering: lease, request, outcome.
  ...places(ALL, 'delivery-lease'),
  ...places(ALL, 'webhook'),
  ...places(ALL, 'delivery-record'),
  // Every start reads the applied migrations.
  ...places(['after'], 'schema-applied'),
];

/** Places where the very first start could be left half done. */
export const FIRST_START_FAILPOINTS: readonly Failpoint[] = [
  ...places(['before', 'after'], 'begin'),
  ...places(['after'], 'script'),
  { when: 'before', what: 'schema-insert-applied', nth: 1 },
  { when: 'after', what: 'schema-insert-applied', nth: 3 },
  { when: 'after', what: 'schema-insert-applied', nth: 5 },
  ...places(ALL, 'commit', 'schema-insert-applied'),
  ...places(['before', 'after'], 'receipt-key-insert'),
  ...places(['before'], 'chain-cursor-insert'),
  ...places(['after'], 'producer-set-insert'),
  ...places(ALL, 'commit', 'chain-cursor-insert'),
];

export function nameOf({ when, what, having }: Failpoint): string {
  return `${when} ${what}${having === undefined ? '' : ` with ${having}`}`;
}
