import { DEFAULT_UNPAID_LIMITS } from '../../domain/unpaid.ts';
import { sealedTable } from './seal.ts';

/** The facts about an order that never change. Once its status has changed, the status has its own seal. */
export const SEALED_INVOICE = sealedTable(
  'invoices',
  {
    ...{ id: 'uuid', projectId: 'uuid', network: 'text', addressId: 'uuid' },
    ...{ idempotencyKey: 'text', externalId: 'text' },
    ...{ requestedMicro: 'int8', payableMicro: 'int8', checkoutToken: 'text', createdAt: 'timestamptz' },
    ...{ expiresAt: 'deadline', apiKeyId: 'uuid?', options: 'text?' },
  },
  { later: ['options'] },
);

/** The fact that an order is paid, and the transfer that paid it. */
export const SEALED_PAID = sealedTable(
  'invoices.paid',
  { id: 'uuid', projectId: 'uuid', network: 'text', status: 'text', paidTransferId: 'uuid?' },
  { mac: 'paid_mac', needed: (row) => `${row}status = 'PAID' or ${row}paid_transfer_id is not null` },
);

/** Seals every status except the first, together with the number of earlier changes, so that an old seal can't be reused. */
export const SEALED_STATUS = sealedTable(
  'invoices.status',
  { id: 'uuid', projectId: 'uuid', network: 'text', status: 'text', eventCount: 'int4' },
  {
    mac: 'paid_mac',
    needed: (row) => `${row}status <> 'PAID' and (${row}status <> 'PENDING' or ${row}event_count > 0)`,
  },
);

/** The fact that the shop withdrew the invoice. */
export const SEALED_WITHDRAWN = sealedTable(
  'invoices.withdrawn',
  { id: 'uuid', projectId: 'uuid', network: 'text', withdrawnAt: 'timestamptz?' },
  { mac: 'withdrawn_mac', needed: (row) => `${row}withdrawn_at is not null` },
);

export const SEALED_TRANSFER = sealedTable('transfers', {
  ...{ id: 'uuid', projectId: 'uuid', network: 'text', addressId: 'uuid', txId: 'bytea', logIndex: 'int4' },
  ...{ blockNumber: 'int8', blockId: 'bytea', blockTime: 'timestamptz' },
  fromAddress: 'text',
  amountMicro: 'numeric',
  kind: 'text',
  invoiceId: 'uuid?',
});

/** A transfer from one of our addresses. It has no id, because its place on the chain identifies it. */
export const SEALED_OUTGOING = sealedTable('outgoing_transfers', {
  ...{ txId: 'bytea', logIndex: 'int4', network: 'text', projectId: 'uuid', addressId: 'uuid' },
  ...{ blockNumber: 'int8', blockId: 'bytea', blockTime: 'timestamptz', toAddress: 'text', amountMicro: 'numeric' },
});

/** The fact that a transfer was refunded, and the transfer that refunded it. */
export const SEALED_REFUND = sealedTable('transfer_refunds', {
  transferId: 'uuid',
  projectId: 'uuid',
  network: 'text',
  txId: 'bytea',
  logIndex: 'int4',
});

export const SEALED_EVENT = sealedTable(
  'events',
  {
    id: 'uuid',
    projectId: 'uuid',
    network: 'text',
    type: 'text',
    invoiceId: 'uuid?',
    transferId: 'uuid?',
    sequence: 'int4',
    body: 'text',
  },
  { isReadOnce: true },
);

export const SEALED_ADDRESS = sealedTable('addresses', {
  id: 'uuid',
  projectId: 'uuid',
  account: 'bytea',
});

export const SEALED_API_KEY = sealedTable(
  'api_keys',
  {
    id: 'uuid',
    projectId: 'uuid',
    secretSha256: 'bytea',
    allowedCidrs: 'text[]?',
    expiresAt: 'timestamptz?',
    scopes: 'text[]?',
  },
  // A revoked key has lost its seal and must never get one again.
  { needed: (row) => `${row}revoked_at is null`, later: ['scopes'] },
);

export const SEALED_ENDPOINT = sealedTable(
  'webhook_endpoints',
  {
    ...{ id: 'uuid', projectId: 'uuid', url: 'text', eventTypes: 'text[]?' },
    ...{ adapter: 'text?', currency: 'text?', rateMicro: 'int8?', rateSource: 'text?' },
  },
  { later: ['adapter', 'currency', 'rateMicro', 'rateSource'] },
);

/** The last rate from the source. It changes automatically, unlike the settings. */
export const SEALED_READ_RATE = sealedTable(
  'webhook_endpoints.rate',
  { id: 'uuid', projectId: 'uuid', readMicro: 'int8?', readAt: 'timestamptz?' },
  { mac: 'read_mac', needed: (row) => `${row}rate_source is not null` },
);

/** The part of an adapter order's data that isn't in its invoice. */
export const SEALED_ADAPTER_ORDER = sealedTable('adapter_orders', {
  ...{ invoiceId: 'uuid', projectId: 'uuid', endpointId: 'uuid', dialect: 'text', notifyUrl: 'text' },
  ...{ returnUrl: 'text?', amount: 'text', name: 'text?', type: 'text?', param: 'text?' },
});

export const SEALED_ACCOUNT_KEY = sealedTable('account_keys', {
  id: 'uuid',
  projectId: 'uuid',
  xpub: 'text',
});

/** The fact that a master key is used to seal rows in this ledger. */
export const SEALED_PROOF = sealedTable('ledger_proofs', { keyId: 'text' }, { isReadOnce: true });

export const SEALED_RECEIPT_KEY = sealedTable('receipt_keys', { id: 'text', publicKey: 'bytea' });

export const SEALED_PROJECT = sealedTable(
  'projects',
  {
    id: 'uuid',
    network: 'text',
    name: 'text',
    policy: 'text',
    maxSurchargeMicro: 'int8',
    invoiceLifetimeMs: 'int8',
    supportContact: 'text?',
    returnUrl: 'text?',
    accent: 'text?',
    logoId: 'text?',
    archivedAt: 'timestamptz?',
    embedOrigins: 'text?',
  },
  { later: ['archivedAt', 'embedOrigins'] },
);

/** A project's limits on unpaid orders. The default limits don't need a seal, because setting them doesn't harm anyone. */
export const SEALED_LIMITS = sealedTable(
  'projects.limits',
  { id: 'uuid', network: 'text', maxUnpaid: 'int4?', maxUnpaidPerMinute: 'int4?' },
  {
    mac: 'limits_mac',
    needed: (row) =>
      `${row}limits_mac is not null or (${row}max_unpaid, ${row}max_unpaid_per_minute) is distinct from (${DEFAULT_UNPAID_LIMITS.maxUnpaid}, ${DEFAULT_UNPAID_LIMITS.maxUnpaidPerMinute})`,
  },
);

export const SEALED_PRODUCERS = sealedTable('producer_sets', {
  network: 'text',
  chainTime: 'timestamptz',
  producers: 'json',
});

/** An operator's action, with its position in the log. */
export const SEALED_ACTION = sealedTable(
  'operator_actions',
  {
    seq: 'int8',
    actorKind: 'text',
    actorId: 'uuid?',
    actedBy: 'text',
    origin: 'text?',
    requestId: 'text?',
    projectId: 'uuid?',
    action: 'text',
    subject: 'text',
    detail: 'json',
    actedAt: 'timestamptz',
  },
  { isReadOnce: true },
);

export const SEALED_CURSOR = sealedTable('chain_cursors', {
  network: 'text',
  solidNumber: 'int8',
  solidId: 'bytea',
});

/** An item that can't be recorded in the ledger yet. */
export const SEALED_SET_ASIDE = sealedTable('set_aside', { id: 'text', network: 'text', content: 'text' });

/** The list of existing rows, because a row's own MAC can't show that the row has been deleted. */
export const SEALED_PAGE = sealedTable(
  'inventory_pages',
  { id: 'uuid', network: 'text', subject: 'text', number: 'int8', content: 'bytea' },
  { isReadOnce: true },
);

/**
 * The recipients of notifications, with their quiet hours. Without this seal, attackers could silence the notifications about themselves.
 */
export const SEALED_CHANNEL = sealedTable('notify_channels', {
  id: 'uuid',
  kind: 'text',
  name: 'text',
  shown: 'text',
  quietFrom: 'int4?',
  quietTo: 'int4?',
  summaryAt: 'int4?',
  timeZone: 'text',
  createdAt: 'timestamptz',
  removedAt: 'timestamptz?',
});

/** A notification that hasn't been sent yet. */
export const SEALED_NOTIFICATION = sealedTable(
  'notifications',
  {
    ...{ id: 'uuid', channelId: 'uuid', about: 'text', phase: 'text', isUrgent: 'bool', title: 'text', body: 'text' },
  },
  { needed: (row) => `${row}status = 'waiting'`, isReadOnce: true },
);

/** An open alarm. Its id isn't sealed, because an alarm that is raised again keeps its row's id, which isn't known at that time. */
export const SEALED_ALARM = sealedTable(
  'alarms',
  { kind: 'text', network: 'text', subject: 'text', detail: 'text' },
  // A closed alarm never changes.
  { needed: (row) => isOpenAlarm(row) },
);

/**
 * The SQL that says whether an alarm is open. An alarm also counts as open if its end has no seal. Each half matches one partial index.
 * Alarms are never deleted, so without the indexes each count would read all of them.
 */
export function isOpenAlarm(row: string): string {
  return `(${row}resolved_at is null or (${row}resolved_at is not null and ${row}needs_closing and ${row}closed_mac is null))`;
}

/** The fact that an alarm is over. If it's raised again, this row isn't reopened. */
export const SEALED_CLOSED = sealedTable(
  'alarms.closed',
  { id: 'uuid', network: 'text', kind: 'text', subject: 'text' },
  { mac: 'closed_mac', needed: (row) => `${row}resolved_at is not null and ${row}needs_closing` },
);

/** A person's identity, permissions and sign-in factors. */
export const SEALED_PERSON = sealedTable(
  'people',
  {
    ...{ id: 'uuid', login: 'text', name: 'text', role: 'text', projects: 'text[]?' },
    ...{ passwordHash: 'text?', totpSealed: 'bytea?' },
  },
  // Here and below, credentials lose their seal when they end, and must never get one again.
  { needed: (row) => `${row}removed_at is null` },
);

export const SEALED_PASSKEY = sealedTable(
  'passkeys',
  { id: 'bytea', personId: 'uuid', publicKey: 'bytea' },
  { needed: (row) => `${row}removed_at is null` },
);

export const SEALED_RECOVERY_CODE = sealedTable(
  'recovery_codes',
  { sha256: 'bytea', personId: 'uuid' },
  { needed: (row) => `${row}ended_at is null`, isReadOnce: true },
);

export const SEALED_INVITATION = sealedTable(
  'invitations',
  { sha256: 'bytea', personId: 'uuid', kind: 'text', expiresAt: 'timestamptz' },
  { needed: (row) => `${row}ended_at is null`, isReadOnce: true },
);

/** The last use isn't sealed, but a session ends at most a week after its start. */
export const SEALED_SESSION = sealedTable(
  'sessions',
  {
    ...{ id: 'uuid', sha256: 'bytea', personId: 'uuid', proof: 'text' },
    ...{ createdAt: 'timestamptz', steppedUpAt: 'timestamptz?' },
  },
  { needed: (row) => `${row}ended_at is null` },
);

export const SEALED_ADMIN_KEY = sealedTable(
  'admin_keys',
  {
    ...{ id: 'uuid', name: 'text', secretSha256: 'bytea', role: 'text', projects: 'text[]?' },
    ...{ allowedCidrs: 'text[]?', expiresAt: 'timestamptz?' },
  },
  { needed: (row) => `${row}revoked_at is null` },
);

/** The fact that an operator annulled a recorded transfer because it isn't on the chain. */
export const SEALED_ANNULMENT = sealedTable('transfer_annulments', {
  transferId: 'uuid',
  projectId: 'uuid',
  invoiceId: 'uuid?',
  deniedBy: 'bytea',
  annulledAt: 'timestamptz',
  annulledBy: 'text',
  reason: 'text',
});

/** How an operator resolved a transfer that didn't pay an invoice. */
export const SEALED_RESOLUTION = sealedTable('transfer_resolutions', {
  transferId: 'uuid',
  projectId: 'uuid',
  resolution: 'text',
  note: 'text',
  invoiceId: 'uuid?',
  resolvedBy: 'text',
  resolvedAt: 'timestamptz',
});

/** The fact that an invoice's payer looked up a transfer that didn't pay an invoice. */
export const SEALED_CLAIM = sealedTable('transfer_claims', {
  transferId: 'uuid',
  invoiceId: 'uuid',
  projectId: 'uuid',
  eventId: 'uuid',
  claimedAt: 'timestamptz',
});

/** A block that no node could prove but that an operator let pass. */
export const SEALED_PASSED = sealedTable('passed_blocks', {
  number: 'int8',
  network: 'text',
  blockId: 'bytea',
  digest: 'bytea',
  passedAt: 'timestamptz',
  passedBy: 'text',
  reason: 'text',
});
