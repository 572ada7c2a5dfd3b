import type { AlarmKind } from '../../domain/alarm-kinds.ts';
import { encodeId, type IdPrefix, timeOfId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import { findActionsOn } from '../../store/access/audit-log.ts';
import { type Alarm, findAlarmSubjects } from '../../store/chain/alarms.ts';
import { endAlarm, tellAlarm } from '../../store/chain/tell-alarms.ts';
import type { Listed, Subject } from '../../store/ledger/inventory.ts';
import type { Leading } from '../leading.ts';

/**
 * The state for keeping a network's inventory. `seen` is the inventory's end as this process last saw it, so that a reset to an earlier end
 * is detected.
 */
export type Keeping = Leading & {
  random(bytes: number): Uint8Array;
  seen: Map<Subject, { number: number; bytes: number }>;
  /** The ids of rows that this process has seen, but that are still too young to be listed. */
  young: Map<Listed, Set<string>>;
  /** The operator-closed alarms that were open at the last check, and the audit log's last entry at that time. */
  alarms: { open: readonly Alarm[]; audit: number };
};

/** A person can handle this many alarms. Further missing rows are reported once these alarms are resolved. */
const MAX_ALARMS = 20;
const PREFIX: Record<Listed, IdPrefix> = { invoices: 'inv', transfers: 'trf', events: 'evt' };
const SEE = 'docs/reference/alarms.md';

/**
 * Raises `rows-missing` for missing rows, except those that an operator has accepted. Resolves the alarm for the rows in `listed` that
 * exist.
 */
export async function tellMissing(
  keeping: Keeping,
  table: Listed,
  listed: readonly string[],
  missing: ReadonlySet<string>,
): Promise<void> {
  const { db, network } = keeping;
  const nameOf = (id: string) => `${table}:${id}`;
  const about = missing.size === 0 ? [] : await findActionsOn(db, 0, [...missing].map(nameOf));
  const accepted = new Set(about.filter(({ action }) => action === 'row.accepted').map(({ subject }) => subject));
  const gone = [...missing].filter((id) => !accepted.has(nameOf(id)));
  const open = new Set(await findAlarmSubjects(db, network, 'rows-missing'));
  for (const id of listed) {
    const subject = nameOf(id);
    if (!open.has(subject) || (missing.has(id) && !accepted.has(subject))) continue;
    await endAlarm(keeping, 'rows-missing', network, subject);
  }
  const more = gone.length > MAX_ALARMS ? `, and ${gone.length - MAX_ALARMS} more rows with similar ids` : '';
  for (const id of gone.slice(0, MAX_ALARMS)) {
    const name = encodeId(PREFIX[table], id);
    const detail = `${name} from ${toIso(timeOfId(name))} is missing from ${table}${more}: the row was deleted directly in the database. See "rows-missing" in ${SEE}`;
    await tell(keeping, 'rows-missing', nameOf(id), detail);
  }
}

/** Prefix of the alarm subject if the alarm is about the inventory itself. */
export const INVENTORY = 'inventory_pages:';

/** Reports that the inventory itself has lost its end or a page. */
export function tellCutOff(keeping: Keeping, subject: Subject): Promise<void> {
  const detail = `the list of all ${subject} has lost entries: the database, or part of it, was reset to an earlier state. See "rows-missing" in ${SEE}`;
  return tell(keeping, 'rows-missing', `${INVENTORY}${subject}`, detail);
}

export function tellUnpaid(
  keeping: Keeping,
  { transferId, invoiceId }: { transferId: string; invoiceId: string },
): Promise<void> {
  const [invoice, transfer] = [encodeId('inv', invoiceId), encodeId('trf', transferId)];
  const detail = `${transfer} paid ${invoice}, but the invoice does not show this payment: the invoice was changed directly in the database. See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `invoices.paid ${invoiceId}`, detail);
}

/** Reports a row whose state isn't explained by any recorded action. */
export function tellUnexplained(
  keeping: Keeping,
  { table, id, name, isGone }: { table: string; id: string; name: string; isGone: boolean },
): Promise<void> {
  if (isGone) {
    const detail = `${name} is missing from ${table}: the row was deleted directly in the database. See "rows-missing" in ${SEE}`;
    return tell(keeping, 'rows-missing', `${table}:${id}`, detail);
  }
  const detail = `${name} (a row in ${table}, ${id}) was changed without an entry in the audit log: it was changed directly in the database, or reset to an earlier state. See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `${table} ${id}`, detail);
}

/** Reports that someone is withholding an event from an endpoint. */
export function tellDelivery(
  keeping: Keeping,
  { eventId, endpointId, what }: { eventId: string; endpointId: string; what: string },
): Promise<void> {
  const [event, endpoint] = [encodeId('evt', eventId), encodeId('whe', endpointId)];
  const detail = `the delivery of ${event} to ${endpoint} ${what}: the database was changed directly. To send the event again, run "quittance deliveries replay ${event} --endpoint ${endpoint}". See "row-changed" in ${SEE}`;
  return tell(keeping, 'row-changed', `deliveries ${eventId} ${endpointId}`, detail);
}

const tell = (keeping: Keeping, kind: AlarmKind, subject: string, detail: string) =>
  tellAlarm(keeping, kind, { network: keeping.network, subject, detail });
