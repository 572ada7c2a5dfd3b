import { AppError } from '../../domain/errors.ts';
import { decodeId, encodeId, firstIdOf, NIL_UUID, timeOfId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso, unixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { readChoice, readLimit } from '../input/read-choice.ts';
import { readPeriod } from '../input/read-period.ts';
import { limitTime } from '../limit-time.ts';
import { selectProject } from '../projects/select-project.ts';
import { readRequestId } from './read-request-id.ts';
import { type DeskRequest, findDeskRequests, type RequestFilter } from './request-desk.ts';
import type { RequestListView, RequestView } from './views.ts';

/** Problems begin with 4 or 5; nothing here answers with 1 or 3. */
const STATUS_CLASSES = ['2xx', '4xx', '5xx'] as const;
/** Looked through for a page at most, and the rest of a second: a tenth of a second. */
const WINDOW = 10_000;
/** Where everything fits: more than a page has. */
const SHORT_WINDOW = 1000;
const TIMEOUT_MS = 5000;
/** Behind every request there will be. */
const NEVER = unixMs(Date.UTC(9999, 0));
/** The bound of an external id. */
const MAX_EXTERNAL_ID = 400;

type Given = { [Name in 'status' | 'key' | 'externalId' | 'from' | 'to' | 'before']?: string | undefined };
export type Wanted = Omit<RequestFilter, 'projectId'> & { limit: number };

/** Reads which requests are meant. Errors: `INVALID_ARGUMENT`. */
export function readRequestFilter({
  status,
  key,
  externalId,
  before,
  limit,
  ...period
}: Given & { limit: string }): Wanted {
  const { from, until } = readPeriod(period);
  const statusClass = readChoice('status', status, STATUS_CLASSES);
  const end = requestIdAt(until ?? NEVER);
  const given = before === undefined ? end : readRequestId(before);
  return {
    statusClass: statusClass === null ? null : Number(statusClass[0]),
    keyId: key === undefined ? null : readKeyId(key),
    externalId: externalId === undefined ? null : readName(externalId),
    notBefore: requestIdAt(from ?? unixMs(0)),
    before: given < end ? given : end,
    limit: readLimit(limit, { least: 1, most: 500 }),
  };
}

/** The lowest id of a request of a moment. */
function requestIdAt(time: number): string {
  return encodeId('req', firstIdOf(time));
}

function readKeyId(text: string): string {
  const id = decodeId('key', text);
  if (id !== null) return id;
  throw new FieldError(
    'key',
    say`is ${clip(text)}: a key id is "key_" and 26 characters, as "${{ command: 'key list' }}" shows it`,
  );
}

function readName(text: string): string {
  if (text.length <= MAX_EXTERNAL_ID && !text.includes('\0')) return text;
  throw new FieldError('externalId', `takes at most ${MAX_EXTERNAL_ID} characters`);
}

/** Whose: those of a project, or those that came without a valid key. */
type Whose = { projectId: string | undefined; isKeyless: boolean };

/** Requests of the last 30 days, the newest first. At most 10,000 or so are looked through for a page. Errors: `FORBIDDEN`. */
export async function listRequests(
  { db }: { db: Database },
  actor: Actor,
  { projectId, isKeyless, limit, ...filter }: Wanted & Whose,
): Promise<RequestListView> {
  const owner = isKeyless ? nobodyFor(actor) : (await selectProject(db, actor, projectId)).id;
  const fitsAll = filter.statusClass === null && filter.keyId === null && filter.externalId === null;
  const page = { limit: limit + 1, window: fitsAll ? SHORT_WINDOW : WINDOW };
  const { requests, looked, searchedTo } = await db.snapshot(async (tx) => {
    await limitTime(tx, TIMEOUT_MS);
    return findDeskRequests(tx, { ...filter, projectId: owner }, page);
  });
  const data = requests.slice(0, limit);
  // The next page goes on behind the last one shown or, where too few fit, behind the last second that was looked at.
  const next = requests.length > limit ? data.at(-1)?.id : searchedTo === null ? undefined : requestIdAt(searchedTo);
  return { data: data.map(viewRequest), looked, nextBefore: next ?? null };
}

/** They belong to no project, so they are for those who may see all. */
function nobodyFor({ projects, name }: Actor): string {
  if (projects === null) return NIL_UUID;
  throw new AppError(
    'FORBIDDEN',
    `requests without a valid key belong to no project, and ${name} may see some projects only: ask an owner`,
  );
}

export function viewRequest({ id, projectId, key, ...request }: DeskRequest): RequestView {
  return {
    ...{ requestId: id, time: toIso(timeOfId(id)) },
    projectId: projectId === NIL_UUID ? null : encodeId('prj', projectId),
    key: key && { keyId: encodeId('key', key.id), name: key.name },
    ...request,
  };
}
