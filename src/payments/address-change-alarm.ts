import { randomUUID } from 'node:crypto';
import { encodeId } from '../domain/ids.ts';
import { toIso } from '../domain/time.ts';
import { raiseAlarm, resolveAlarms } from '../store/chain/alarms.ts';
import type { Sql } from '../store/db/database.ts';
import { type AddressChange, findWaitingChanges } from '../store/ledger/address-changes.ts';
import type { Project } from '../store/ledger/projects.ts';

export const PENDING = 'address-change-pending';
const FAILED = 'address-change-failed';

/** The rest of them stands in `quittance address pending`. */
const MAX_CHANGES = 3;
const MAX_ADDRESSES = 3;

/**
 * Raises the alarm of a project about its changes of addresses that wait, as they are now, or closes it where none does. In the transaction
 * that changes one, so that no change ever waits unseen.
 */
export async function settleChangeAlarm(tx: Sql, { id, network }: Pick<Project, 'id' | 'network'>): Promise<void> {
  const subject = encodeId('prj', id);
  const waiting = await findWaitingChanges(tx, id);
  if (waiting.length === 0) {
    await resolveAlarms(tx, network, PENDING, subject);
    return;
  }
  const named = waiting.slice(0, MAX_CHANGES).map(describeChange);
  const more = waiting.length - named.length;
  const detail = `addresses of ${subject} wait to take invoices: ${named.join('; ')}${more > 0 ? `; and ${more} more` : ''}. If they are not yours, withdraw them ("quittance address withdraw chg_…") and find out who proposed them; all of them: "quittance address pending --project ${subject}"`;
  await raiseAlarm(tx, network, { id: randomUUID(), kind: PENDING, subject, detail });
}

/** `chg_…: 2 addresses (T…, T…), proposed by ann (console), are added at 2026-…Z`, for alarms and the log. */
export function describeChange({ id, addresses, actedBy, actorKind, dueAt }: AddressChange): string {
  const more = addresses.length - MAX_ADDRESSES;
  const named = `${addresses.slice(0, MAX_ADDRESSES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const [count, verb] = addresses.length === 1 ? ['1 address', 'is'] : [`${addresses.length} addresses`, 'are'];
  return `${encodeId('chg', id)}: ${count} (${named}), proposed by ${actedBy} (${actorKind}), ${verb} added at ${toIso(dueAt)}`;
}

/** Says that a change could not be made. An operator closes it. */
export async function raiseFailedChange(tx: Sql, change: AddressChange, reason: string): Promise<string> {
  const { id, projectId, network } = change;
  const subject = encodeId('prj', projectId);
  const detail = `the addresses of ${encodeId('chg', id)} were not added to ${subject}: ${reason}. Where they are yours, propose them anew; then close this with "quittance chain acknowledge --alarm ${FAILED} --network ${network} --subject ${subject}"`;
  await raiseAlarm(tx, network, { id: randomUUID(), kind: FAILED, subject, detail });
  return detail;
}
