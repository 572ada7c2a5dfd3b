import { say } from '../../../core/domain/message.ts';
import {
  BEGINNING,
  type ChainVerification,
  type LogProblem,
  partAccepted,
  walkLog,
} from '../../../core/payments/watch-audit-log.ts';
import { givingWay } from '../../../core/runtime/concurrency.ts';
import { Type } from '../../../core/runtime/type.ts';
import {
  type AuditFilter,
  type AuditHead,
  findAuditHead,
  listAuditEntries,
} from '../../../core/store/access/audit-log.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import type { Actor } from '../actor.ts';
import { columnsText, fieldsText, formatHint } from '../command-words.ts';
import type { ExportedRows } from '../export/write-rows.ts';
import {
  anything,
  id,
  list,
  listOf,
  maybe,
  of,
  part,
  type Shown,
  schemaOf,
  show,
  text,
  time,
  whole,
  yes,
} from '../fields.ts';
import { FieldError } from '../input/problems.ts';
import { localOperation, operation } from '../operation.ts';
import { exportFile, exportFormat, limit, line } from '../option.ts';

/** `sound` tells whether the entry's seal is valid, if `QUITTANCE_ROW_MACS` requires seals. */
const entry = {
  seq: whole,
  at: of('actedAt', time),
  actor: of('*', part({ kind: of('actorKind', text), id: of('actorId', maybe(text)), name: of('actedBy', text) })),
  origin: maybe(text),
  requestId: maybe(text),
  action: text,
  subject: text,
  projectId: maybe(id('prj')),
  detail: anything,
  hash: text,
  sound: of('isSound', yes),
};
export type AuditEntryView = Shown<typeof entry>;

const MOST_LISTED = 1000;
/** The number of rows that an export reads per query. */
const PAGE = 1000;
/** Every action and every subject has fewer characters than this. */
const MAX_TEXT = 200;

const filters = {
  action: line('<action>', 'only actions of this type, such as key.created'),
  subject: line('<subject>', 'only actions on this subject: prj_…, key_…, whe_…, trf_…, T…'),
  by: line('<name>', 'only actions by this person'),
};
type Texts = { [Name in keyof typeof filters]?: string | undefined };
type Page = { limit?: string | undefined; before?: string | undefined };

/** Reads the filter. `limit` is from 1 to 1,000. Throws `INVALID_ARGUMENT`. */
export function readAuditFilter({ limit = '50', before, ...texts }: Texts & Page): AuditFilter {
  const count = /^[1-9]\d{0,3}$/.test(limit) ? Number(limit) : 0;
  if (count < 1 || count > MOST_LISTED) throw new FieldError('limit', `must be 1 to ${MOST_LISTED}`);
  if (before !== undefined && !/^[1-9]\d{0,14}$/.test(before))
    throw new FieldError('before', 'must be an entry number');
  const read = (field: keyof Texts) => {
    const given = texts[field];
    if (given === undefined) return null;
    if (given !== '' && given.length <= MAX_TEXT && !given.includes('\0')) return given;
    throw new FieldError(field, `must have 1 to ${MAX_TEXT} characters`);
  };
  return {
    before: before === undefined ? null : Number(before),
    ...{ limit: count, action: read('action'), subject: read('subject'), by: read('by') },
  };
}

/** The entries, newest first. The next page holds the entries with numbers below `next`, which is `null` on the last page. */
export type AuditListView = { data: AuditEntryView[]; next: number | null };

export const listAudit = operation({
  action: 'listAudit',
  summary: 'List actions by people, newest first',
  route: 'GET /audit',
  command: 'audit list',
  output: listOf(entry, { next: maybe(whole).schema }),
  input: Type.Object({
    ...filters,
    limit: limit(MOST_LISTED, '50'),
    before: line('<number>', 'show entries older than this one'),
  }),
  read: (given) => readAuditFilter(given),
  run: async ({ db }: { db: Sql }, _actor, filter): Promise<AuditListView> => {
    const entries = await listAuditEntries(db, filter);
    const last = entries.length < filter.limit ? undefined : entries.at(-1);
    return { data: entries.map((each) => show(entry, each)), next: last?.seq ?? null };
  },
  print: ({ data, next }) => ({
    text: columnsText(data, [
      ['NUMBER', ({ seq, sound }) => (sound ? String(seq) : `${seq} NOT AS SEALED`)],
      ['AT', 'at'],
      ['WHO', ({ actor }) => actor.name],
      ['BY', ({ actor }) => actor.kind],
      ['ACTION', 'action'],
      ['ON', 'subject'],
      ['DETAIL', ({ detail }) => JSON.stringify(detail)],
    ]),
    next: next !== null && say`for older entries, add ${{ field: 'before' }} ${next}`,
  }),
});

/** An export's columns, in order. Scripts and spreadsheets rely on the order, so add new columns at the end. */
const AUDIT_COLUMNS: ExportedRows<AuditEntryView>['columns'] = [
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

/** Yields every entry, newest first. */
async function* exportAudit({ db }: { db: Sql }, actor: Actor, filter: AuditFilter): AsyncGenerator<AuditEntryView[]> {
  for (let { before } = filter; ; ) {
    const page = await listAudit.run({ db }, actor, { ...filter, before, limit: PAGE });
    if (page.data.length > 0) yield page.data;
    if (page.next === null) return;
    before = page.next;
  }
}

export const exportAuditOperation = localOperation({
  action: 'exportAudit',
  command: 'audit export',
  does: 'export the log for your auditors, newest first',
  isExport: true,
  input: Type.Object({ ...filters, format: exportFormat(), output: exportFile() }),
  read: ({ action, subject, by }) => readAuditFilter({ action, subject, by }),
  run: async (deps: { db: Sql }, actor, filter) => ({
    ...{ columns: AUDIT_COLUMNS, batches: exportAudit(deps, actor, filter), name: 'entry', plural: 'entries' },
  }),
});

const problem = { seq: whole, message: text };
/**
 * `problem` is the first place where the log was changed. `accepted` lists earlier changes that a person has acknowledged. `unsealed` is
 * the number of entries from before seals were introduced. `head` is the newest entry, which should be kept elsewhere.
 */
const verified = {
  good: yes,
  entries: whole,
  head: maybe(part({ seq: whole, hash: text })),
  problem: maybe(part(problem)),
  accepted: list(part(problem)),
  unsealed: whole,
};
export type VerifiedAuditView = Shown<typeof verified>;

/** Reads a head that was kept from an earlier check, such as `123:ab…`. Throws `INVALID_ARGUMENT`. */
function readHead(given: string | undefined): AuditHead | null {
  if (given === undefined) return null;
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/i.exec(given.trim()) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash: hash.toLowerCase() };
  throw new FieldError('head', 'must be the number and hash that an earlier run printed, such as 123:4f1c…');
}

/** Formats a head as the text that people keep. */
export function writeHead(head: AuditHead | null): string | null {
  return head === null ? null : `${head.seq}:${head.hash}`;
}

/**
 * Reads the audit log from its first entry, and reports the first entry that was changed, removed, inserted or forged and hasn't been
 * acknowledged. Someone with the master key can forge a whole consistent log, and an owner of the tables can cut off its end. Both are
 * detected with `kept`, a head that was kept elsewhere.
 */
export const verifyAudit = operation({
  action: 'verifyAudit',
  summary: 'Check whether the audit log was changed',
  route: 'GET /audit/verification',
  command: 'audit verify',
  does: 'check whether the log was changed; exits 1 if the log was changed',
  output: schemaOf(verified),
  input: Type.Object({
    head: line('<number:hash>', 'head from an earlier run, to check whether the log was rewritten after that run'),
  }),
  read: ({ head }) => ({ kept: readHead(head) }),
  run: async ({ db }: { db: Sql }, _actor, { kept }) => verifyLog({ db, sealer: await db.sealer(false), kept }),
  print: (view) => ({
    text: fieldsText(view, [
      ['entries', 'entries'],
      ['head', ({ head }) => writeHead(head)],
      [
        'older than the seals',
        ({ unsealed }) => (unsealed === 0 ? null : `${unsealed}: ${formatHint({ command: 'ledger seal' })}`),
      ],
      ...view.accepted.map(({ message }) => ['acknowledged', () => message] as const),
      ['good', ({ problem }) => (problem === null ? 'yes' : `NO: ${problem.message}`)],
    ]),
    next:
      view.good &&
      say`keep the head on another machine. Later, "${{ command: 'audit verify', input: { head: '…' } }}" uses it to check whether the log was rewritten`,
    hasFailed: !view.good,
  }),
});

/** Verifies the log. The caller passes the sealer, because a database that was just restored doesn't know its ledger's key. */
export async function verifyLog({ db, sealer, kept }: ChainVerification): Promise<VerifiedAuditView> {
  const accepted: LogProblem[] = [];
  let [place, entries, unsealed] = [BEGINNING, 0, 0];
  const rest = () => ({ unsealed, accepted: accepted.map(({ seq, message }) => ({ seq, message })) });
  for await (const page of givingWay(walkLog({ db, sealer, kept }, BEGINNING))) {
    const parted = await partAccepted({ db, sealer }, page.problems);
    accepted.push(...parted.accepted);
    unsealed += page.unsealed;
    const [first] = parted.others;
    if (first !== undefined) {
      const { seq, message, passed } = first;
      const head = await findAuditHead(db);
      return { good: false, entries: entries + passed, head, problem: { seq, message }, ...rest() };
    }
    entries += page.entries;
    place = page.place;
  }
  const head = place.seq === 0 || place.hash === null ? null : { seq: place.seq, hash: place.hash };
  return { good: true, entries, head, problem: null, ...rest() };
}

export const operations = [listAudit, verifyAudit, exportAuditOperation];
