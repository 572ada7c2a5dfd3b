import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import { type AuditEntry, type AuditFilter, listAuditEntries } from '../../store/access/audit-log.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import type { ExportedRows } from '../export/write-rows.ts';
import { FieldError } from '../input/field-error.ts';
import type { AuditEntryView, AuditListView } from './views.ts';

const MOST_LISTED = 1000;
/** Rows that an export reads at once. */
const PAGE = 1000;
/** Longer than any action or subject is. */
const MAX_TEXT = 200;

type Input = { action?: string | undefined; subject?: string | undefined; by?: string | undefined };

/** Reads which entries are meant. `limit` is 1 to 1,000. Errors: `INVALID_ARGUMENT`. */
export function readAuditFilter({
  limit = '50',
  before,
  ...input
}: Input & { limit?: string | undefined; before?: string | undefined }): AuditFilter {
  const count = /^[1-9]\d{0,3}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > MOST_LISTED) throw new FieldError('limit', `takes 1 to ${MOST_LISTED}`);
  if (before !== undefined && !/^[1-9]\d{0,14}$/.test(before))
    throw new FieldError('before', 'takes the number of an entry');
  return { before: before === undefined ? null : Number(before), limit: count, ...readTexts(input) };
}

function readTexts(input: Input) {
  const read = (field: keyof Input) => {
    const text = input[field];
    if (text === undefined) return null;
    if (text !== '' && text.length <= MAX_TEXT && !text.includes('\0')) return text;
    throw new FieldError(field, `takes 1 to ${MAX_TEXT} characters`);
  };
  return { action: read('action'), subject: read('subject'), by: read('by') };
}

/** What people did, the newest first. */
export async function listAudit({ db }: { db: Sql }, _actor: Actor, filter: AuditFilter): Promise<AuditListView> {
  const entries = await listAuditEntries(db, filter);
  const last = entries.length < filter.limit ? undefined : entries.at(-1);
  return { data: entries.map(viewEntry), next: last?.seq ?? null };
}

/** The columns of an export, in their order. Scripts and spreadsheets rely on it: new ones come last. */
export const AUDIT_COLUMNS: ExportedRows<AuditEntryView>['columns'] = [
  ['number', ({ seq }) => seq],
  ['at', ({ at }) => at],
  ['actorKind', ({ actor }) => actor.kind],
  ['actorId', ({ actor }) => actor.id],
  ['actor', ({ actor }) => actor.name],
  ['origin', ({ origin }) => origin],
  ['requestId', ({ requestId }) => requestId],
  ['action', ({ action }) => action],
  ['subject', ({ subject }) => subject],
  ['projectId', ({ projectId }) => projectId],
  ['detail', ({ detail }) => JSON.stringify(detail)],
  ['hash', ({ hash }) => hash],
  ['sound', ({ sound }) => String(sound)],
];

/** Every entry, the newest first. */
export async function* exportAudit(
  { db }: { db: Sql },
  actor: Actor,
  filter: AuditFilter,
): AsyncGenerator<AuditEntryView[]> {
  for (let { before } = filter; ; ) {
    const page: AuditListView = await listAudit({ db }, actor, { ...filter, before, limit: PAGE });
    if (page.data.length > 0) yield page.data;
    if (page.next === null) return;
    before = page.next;
  }
}

function viewEntry(entry: AuditEntry): AuditEntryView {
  const { seq, actorKind, actorId, actedBy, origin, requestId, projectId, action, subject, detail, actedAt } = entry;
  const { hash, isSound: sound } = entry;
  return {
    ...{ seq, at: toIso(actedAt), actor: { kind: actorKind, id: actorId, name: actedBy }, origin, requestId },
    ...{ action, subject, projectId: projectId && encodeId('prj', projectId), detail, hash, sound },
  };
}
