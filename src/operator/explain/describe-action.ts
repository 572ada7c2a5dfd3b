import type { TimelineEntry } from '../../domain/timeline.ts';
import type { OperatorAction } from '../../store/ledger/operator-actions.ts';
import { shorten } from './explanation.ts';

const DONE: Record<OperatorAction['action'], string> = {
  'address.added': 'added the address',
  'address.derived': 'derived the address and added it',
  'address.retired': 'retired the address: it takes no new invoices and is watched for ever',
  'address.activated': 'took the address into use again',
  'project.changed': 'changed the project',
  'deliveries.replayed': 'sent webhooks again',
  'block.passed': 'let a block pass that no node could prove',
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
