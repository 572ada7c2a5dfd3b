/**
 * The subjects whose fields operators can change. Each change of a field is recorded as `SUBJECT.changed`, with the field in its detail, so
 * a new field needs no name of its own.
 */
const CHANGEABLE = {
  address: 'the address',
  project: 'the project',
  key: 'the API key',
  'admin-key': 'the admin key',
  webhook: 'the endpoint',
  channel: 'the notification channel',
} as const;

/** The other actions that the audit log records, as `subject.verb`, each in words that follow the actor's name. */
export const DONE = {
  'address.added': 'added the address',
  'address.proposed': 'proposed the address: it will be added a day later, or when another owner confirms it',
  'address.confirmed': 'confirmed the address',
  'address.withdrawn': 'withdrew the address, so it was not added',
  'address.failed': 'could not add the address',
  'address.derived': 'derived the address and added it',
  'address.retired': 'retired the address: it gets no new invoices, but it is still watched',
  'address.activated': 'reactivated the address',
  'project.archived': 'archived the project: it accepts no new invoices',
  'project.unarchived': 'unarchived the project',
  'project.created': 'created the project',
  'key.created': 'created the API key',
  'key.revoked': 'revoked the API key',
  'admin-key.created': 'created the admin key',
  'admin-key.revoked': 'revoked the admin key',
  'master-key.rotated': 'rotated the master key',
  'receipt-key.rotated': 'rotated the signing key for receipts',
  'ledger.sealed': 'sealed the rows that had no seal',
  'row.accepted': 'accepted the changed row and sealed it again',
  'webhook.added': 'added the endpoint',
  'webhook.enabled': 'enabled the endpoint',
  'webhook.disabled': 'disabled the endpoint',
  'webhook.rotated': "rotated the endpoint's secret",
  'webhook.tested': 'sent a test event to the endpoint',
  'channel.added': 'added the notification channel',
  'channel.tested': 'sent a test message through the notification channel',
  'channel.removed': 'removed the notification channel',
  'invoice.created': 'created the invoice by hand',
  'invoice.withdrawn': "withdrew the invoice's page",
  'transfer.resolved': 'resolved the transfer',
  'transfer.refunded': 'linked the transfer to its refund',
  'producers.accepted': 'accepted the block producers that nodes report now',
  'alarm.acknowledged': 'closed alarms',
  'backup.requested': 'requested a backup',
  'backup.created': 'created a backup',
  'backup.verified': 'verified a backup',
  'backup.restored': 'restored a backup',
  'backup.accepted': 'accepted a copy of the ledger',
  'user.invited': 'invited the user',
  'user.joined': 'accepted the invitation',
  'user.changed': "changed the user's role",
  'user.reset': "reset the user's sign-in and invited them again",
  'user.removed': 'removed the user',
  'passkey.added': 'added a passkey',
  'passkey.removed': 'removed a passkey',
  'session.started': 'signed in',
  'session.refused': 'entered the right password but no valid code, and was refused',
  'session.stepped-up': 'confirmed their identity again',
  'session.ended': 'ended the session',
  'deliveries.replayed': 'resent webhooks',
  'block.passed': 'accepted a block that no node could prove',
  'chain.rescanned': 'read blocks again and recorded missing transfers',
  'chain.resumed': 'resumed the watcher',
  'chain.repaired': 'corrected the ledger to match the chain',
} as const;

export type RecordedAction = keyof typeof DONE | `${keyof typeof CHANGEABLE}.changed`;

const WORDS = new Map<string, string>([
  ...Object.entries(CHANGEABLE).map(([subject, words]) => [`${subject}.changed`, `changed ${words}`] as const),
  ...Object.entries(DONE),
]);

/** Returns the words that follow the actor's name. A later release may have recorded an unknown action. */
export const describeRecorded = (action: string) => WORDS.get(action) ?? 'did';
