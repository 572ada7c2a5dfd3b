import type { TimelineEntry } from '../../domain/timeline.ts';
import type { OperatorAction } from '../../store/access/audit-log.ts';
import { shorten } from '../input/clip.ts';

/** What was done, behind the name of who did it. */
export const DONE: Record<OperatorAction['action'], string> = {
  'address.added': 'added the address',
  'address.proposed': 'proposed the address, to be added a day later or when another owner confirms it',
  'address.confirmed': 'confirmed the address',
  'address.withdrawn': 'withdrew the address: it was not added',
  'address.failed': 'could not add the address',
  'address.derived': 'derived the address and added it',
  'address.retired': 'retired the address: it takes no new invoices and is watched for ever',
  'address.activated': 'took the address into use again',
  'project.changed': 'changed the project',
  'project.archived': 'archived the project: it takes no new invoices',
  'project.unarchived': 'put the archived project back',
  'project.created': 'made the project',
  'key.created': 'made the API key',
  'key.revoked': 'revoked the API key',
  'admin-key.created': 'made the admin key',
  'admin-key.revoked': 'revoked the admin key',
  'master-key.rotated': 'rotated the master key',
  'receipt-key.rotated': 'made a new signing key of receipts',
  'ledger.sealed': 'sealed the rows that had no seal',
  'row.accepted': 'sealed anew the row that was changed',
  'webhook.added': 'added the endpoint',
  'webhook.changed': 'changed the endpoint',
  'webhook.enabled': 'enabled the endpoint',
  'webhook.disabled': 'disabled the endpoint',
  'webhook.rotated': 'gave the endpoint a new secret',
  'webhook.tested': 'sent a test to the endpoint',
  'channel.added': 'added the notification channel',
  'channel.tested': 'sent a test by the notification channel',
  'channel.removed': 'removed the notification channel',
  'invoice.created': 'made the invoice by hand',
  'invoice.withdrawn': 'withdrew the page of the invoice',
  'transfer.resolved': 'resolved the transfer',
  'transfer.refunded': 'tied the transfer to its refund',
  'producers.accepted': 'took over the producers that nodes name now',
  'alarm.acknowledged': 'closed alarms',
  'backup.requested': 'asked for a backup',
  'backup.created': 'made a backup',
  'backup.verified': 'had a backup examined',
  'backup.restored': 'restored a backup',
  'backup.accepted': 'accepted a copy of the ledger',
  'user.invited': 'invited the person',
  'user.joined': 'took up the invitation',
  'user.changed': 'changed the role of the person',
  'user.reset': 'took from the person what it signs in with, and invited it again',
  'user.removed': 'removed the person',
  'passkey.added': 'added a passkey',
  'passkey.removed': 'removed a passkey',
  'session.started': 'signed in',
  'session.refused': 'was refused with the right password and no valid code',
  'session.stepped-up': 'proved again who it is',
  'session.ended': 'ended the session',
  'deliveries.replayed': 'sent webhooks again',
  'block.passed': 'let a block pass that no node could prove',
  'chain.rescanned': 'read blocks again and recorded what was missing',
  'chain.resumed': 'let the watcher go on',
  'chain.repaired': 'brought the ledger back to what the chain has',
};

/** Describes the action of an operator on an address, a project or an endpoint. */
export function describeAction({ action, actedBy, actedAt, detail, subject }: OperatorAction): TimelineEntry {
  const known = Object.entries(detail).filter(([, value]) => value !== null && value !== '');
  const words = known.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`);
  return {
    at: actedAt,
    kind: 'operator',
    text: `${shorten(actedBy)} ${DONE[action]}`,
    details: words.length === 0 ? [] : [shorten(words.join(', '), 300)],
    data: { action, by: actedBy, subject, detail },
  };
}
