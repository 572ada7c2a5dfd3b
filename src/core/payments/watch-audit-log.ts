import { createHash } from 'node:crypto';
import { NETWORKS } from '../domain/network.ts';
import { DAY_MS, type UnixMs } from '../domain/time.ts';
import type { Loop } from '../runtime/loop.ts';
import {
  type AuditHead,
  type AuditLink,
  findAuditHead,
  readAcknowledged,
  readAuditLinks,
} from '../store/access/audit-log.ts';
import { settleAlarms, tellAlarm } from '../store/chain/alarms.ts';
import type { Seals, Sql } from '../store/db/database.ts';
import type { OpenedSeal, Sealer, SealProblem } from '../store/db/seal.ts';
import { SEALED_ACTION } from '../store/db/sealed-tables.ts';
import { type ExternalCheckpoint, findLedgerLine, type LedgerLine } from './external-checkpoint.ts';
import { guardWhileLeading, type Leading, whileLeading } from './watching.ts';

const LOOK_MS = 30_000;
/** A log that is shorter than this is checked completely every time. */
const SHORT = 1000;
const BUDGET_MS = 100;
/**
 * If there are more problems, the whole log was probably rewritten. The remaining problems are reported once the first ones are resolved.
 */
const MAX_ALARMS = 20;

type Options = Leading & { seals: Seals | undefined; headMark: ExternalCheckpoint | null };

/**
 * Checks the ledger's audit log while this process is the leader. At the start and once a day it checks the whole log. Every minute it
 * checks the new entries, and checks that the newest entry from the previous check is unchanged. It remembers that entry, and stores it in
 * a file if there's a data directory. Runs until it's stopped.
 */
export function startLogWatch(options: Options): Loop {
  const { network, now, isLeader } = options;
  const watch = createLogWatch({ ...options, db: whileLeading(options.db, network, isLeader) });
  return guardWhileLeading(options, { name: 'audit log', onFollower: watch.forget }, () => watch.look(now()));
}

function createLogWatch(options: Options) {
  const { db } = options;
  const whole = createWholeWalk();
  const remembered = createRemembered(options);
  let [lookedAt, wholeAt]: [UnixMs | null, UnixMs | null] = [null, null];
  let [isSealed, isBroken] = [false, false];

  /** Checks the entries that were added after the previous check. */
  const lookAtEnd = async (known: ChainVerification) => {
    const from = known.kept === null ? BEGINNING : { seq: known.kept.seq - 1, hash: null, isSealed };
    const walked = nothingYet(from);
    for await (const page of walkLog(known, from)) addPage(walked, page);
    const { others } = await partAccepted(known, walked.problems);
    for (const found of findingsOf(options, others)) await tellAlarm(options, 'audit-broken', found);
    if (others.length > 0) isBroken = true;
    else await remembered.set(walked.place);
  };
  const settle = async (known: ChainVerification, { place, problems, unsealed }: Scanned) => {
    const { others } = await partAccepted(known, problems);
    await settleAlarms(options, 'audit-broken', findingsOf(options, others), { networks: [options.network] });
    [isSealed, isBroken] = [place.isSealed, others.length > 0];
    if (!isBroken) await remembered.set(place);
    const older = { table: SEALED_ACTION.name, id: `1 to ${unsealed}`, network: options.network } as const;
    const judge = options.seals?.judge;
    if (unsealed > 0 && known.sealer !== null) judge?.onProblem({ ...older, kind: 'unsealed' }, judge);
  };
  return {
    forget: () => {
      [lookedAt, wholeAt] = [null, null];
      whole.forget();
    },
    look: async (at: UnixMs) => {
      // If the clock was set back, the check is due immediately.
      const isDue = (before: UnixMs | null, pauseMs: number) =>
        before === null || at < before || at - before >= pauseMs;
      if (lookedAt === null) await remembered.read();
      const known = { db, sealer: await db.sealer(false), kept: remembered.get() };
      if (isDue(lookedAt, LOOK_MS)) {
        await lookAtEnd(known);
        lookedAt = at;
        const isOften = isBroken || (known.kept?.seq ?? 0) <= SHORT;
        if (!whole.isUnderWay() && isDue(wholeAt, isOften ? LOOK_MS : DAY_MS)) {
          wholeAt = at;
          whole.begin({ ...known, kept: remembered.get() });
        }
      }
      const walked = await whole.goOn().catch((error: unknown) => {
        wholeAt = null;
        throw error;
      });
      if (walked !== null) await settle(known, walked);
    },
  };
}

type Scanned = Pick<VerifiedPage, 'place' | 'problems' | 'unsealed'>;

const nothingYet = (place: Place): Scanned => ({ place, problems: [], unsealed: 0 });

function addPage(walked: Scanned, { place, problems, unsealed }: VerifiedPage): void {
  walked.place = place;
  walked.problems.push(...problems);
  walked.unsealed += unsealed;
}

/** Checks the log from the first entry, one part per second, until the end. */
function createWholeWalk() {
  let underWay: { pages: AsyncGenerator<VerifiedPage>; walked: Scanned } | null = null;
  return {
    isUnderWay: () => underWay !== null,
    begin: (known: ChainVerification) => {
      underWay = { pages: walkLog(known, BEGINNING), walked: nothingYet(BEGINNING) };
    },
    forget: () => {
      underWay = null;
    },
    /** Returns the result when the end is reached. After a failure, the check starts from the beginning. */
    goOn: async (): Promise<Scanned | null> => {
      const endMs = performance.now() + BUDGET_MS;
      const walk = underWay;
      underWay = null;
      if (walk === null) return null;
      do {
        const next = await walk.pages.next();
        if (next.done === true) return walk.walked;
        addPage(walk.walked, next.value);
      } while (performance.now() < endMs);
      underWay = walk;
      return null;
    },
  };
}

/** Remembers the newest entry that passed its check. */
function createRemembered({ db, log, headMark }: Options) {
  let [head, marked]: [AuditHead | null, AuditHead | null] = [null, null];
  let line: LedgerLine | null = null;
  return {
    get: () => head,
    /** If no entry is remembered, the check starts from the current head and has to trust it. */
    read: async () => {
      line = await findLedgerLine(db);
      if (headMark !== null && line !== null) {
        marked = await headMark
          .read(line)
          .then(headOf)
          .catch((error: unknown) => {
            log.error({ err: error }, 'could not read the newest audit log entry saved in the data directory');
            return null;
          });
      }
      head ??= marked ?? (await findAuditHead(db));
    },
    set: async ({ seq, hash }: Place) => {
      if (hash === null || seq === 0) return;
      head = { seq, hash };
      if (headMark === null || line === null || (marked?.seq === seq && marked.hash === hash)) return;
      try {
        await headMark.write(line, head);
        marked = head;
      } catch (error) {
        log.warn({ err: error }, 'could not save the newest audit log entry in the data directory');
      }
    },
  };
}

function headOf(kept: Record<string, unknown> | null): AuditHead | null {
  if (kept === null) return null;
  const { seq, hash } = kept;
  if (Number.isSafeInteger(seq) && typeof hash === 'string') return { seq: seq as number, hash };
  throw new Error('audit-head.json in the data directory is damaged: remove the file if you know the cause');
}

const findingsOf = ({ network }: Options, problems: readonly LogProblem[]) =>
  problems.slice(0, MAX_ALARMS).map(({ name, message }) => ({
    ...{ network, subject: name },
    detail: `the audit log was changed: ${message}. See "audit-broken" in docs/reference/alarms.md`,
  }));

/** Checking a page blocks the rest of the process for a few milliseconds. */
const PAGE = 250;

/**
 * The position that a check has reached. `hash` is the hash of entry `seq`, or `null` if the hash isn't known. `isSealed` means that at
 * least one entry up to that point has a seal.
 */
type Place = { seq: number; hash: string | null; isSealed: boolean };

export const BEGINNING: Place = { seq: 0, hash: '0'.repeat(64), isSealed: false };

/**
 * A place where someone tampered with the log. `name` identifies the entry and its current content, so that another change to the same
 * entry gets a different name. `passed` is the number of entries that precede this one on the page.
 */
export type LogProblem = { seq: number; name: string; message: string; passed: number };

/** `entries`: the number of entries on the page. `unsealed`: how many entries precede the first sealed one. */
type VerifiedPage = { place: Place; entries: number; unsealed: number; problems: LogProblem[] };

/** `kept` is a head from an earlier check. Without a sealer, only the hashes are checked. */
export type ChainVerification = { db: Sql; sealer: Sealer | null; kept: AuditHead | null };

/**
 * Checks the audit log from a position to its end, a few hundred entries at a time. Finds entries that were changed, removed, inserted or
 * forged.
 */
export async function* walkLog({ db, sealer, kept }: ChainVerification, from: Place): AsyncGenerator<VerifiedPage> {
  let place = from;
  for (;;) {
    const links = await readAuditLinks(db, place.seq, PAGE);
    const seals = await openSeals(sealer, links);
    const page: VerifiedPage = { place, entries: links.length, unsealed: 0, problems: [] };
    for (const [index, link] of links.entries()) {
      const [before, seal] = [page.place, seals[index] ?? null];
      const message = problemOf(link, before, kept) ?? (seal === null ? null : sealProblemOf(link, before, seal));
      if (message !== null) page.problems.push({ seq: link.seq, name: nameOf(link, before), message, passed: index });
      if (seal === 'unsealed' && !before.isSealed) page.unsealed += 1;
      const isSealed = before.isSealed || (sealer !== null && seal !== 'unsealed');
      page.place = { seq: link.seq, hash: link.hash, isSealed };
    }
    place = page.place;
    const cut = links.length < PAGE && kept !== null && kept.seq > place.seq ? cutOff(kept, place) : null;
    if (cut !== null) page.problems.push({ ...cut, passed: links.length });
    yield page;
    if (links.length < PAGE) return;
  }
}

/** Returns the problems with the seals. If a key is unknown, reloads the keys first, because another process may have created one. */
async function openSeals(sealer: Sealer | null, links: readonly AuditLink[]): Promise<OpenedSeal['problem'][]> {
  if (sealer === null) return [];
  const open = () => links.map(({ seal }) => (seal === null ? 'unsealed' : sealer.open(SEALED_ACTION, seal).problem));
  const found = open();
  if (!found.includes('unknown-key')) return found;
  await sealer.reload();
  return open();
}

function problemOf({ seq, hash, fields }: AuditLink, before: Place, kept: AuditHead | null): string | null {
  if (seq !== before.seq + 1) return `entry ${before.seq + 1} is missing: it was removed`;
  if (kept?.seq === seq && kept.hash !== hash) {
    return `entry ${seq} had a different hash in an earlier check: the log was rewritten at or before entry ${seq}`;
  }
  if (before.hash !== null && hash !== chainedHash(fields, before.hash)) {
    return `entry ${seq} or the previous entry was modified after it was written`;
  }
  return null;
}

/** Unsealed entries at the start of the log were written before seals existed. */
function sealProblemOf({ seq }: AuditLink, { isSealed }: Place, kind: SealProblem['kind']): string | null {
  if (kind === 'changed') return `the seal of entry ${seq} is wrong: the entry was forged or changed`;
  if (kind === 'unknown-key') return `entry ${seq} was sealed with a master key that is not configured`;
  if (!isSealed) return null;
  return `entry ${seq} has no seal, but an earlier one has: the entry was forged, or a process without the master key or from an older release wrote it`;
}

function cutOff(kept: AuditHead, { seq, hash }: Place): Omit<LogProblem, 'passed'> {
  const end = hash === null ? 'it is missing now' : seq === 0 ? 'the log is empty' : `the log ends at entry ${seq}`;
  return {
    seq: kept.seq,
    name: `end ${kept.seq} ${kept.hash.slice(0, 16)}`,
    message: `entry ${kept.seq} existed in an earlier check, but ${end}: the end of the log was removed`,
  };
}

/** The name stays the same if only the seal is renewed. */
function nameOf({ seq, fields, hash }: AuditLink, before: Place): string {
  const found = createHash('sha256').update(JSON.stringify([before.seq, fields, hash]));
  return `entry ${seq} ${found.digest('hex').slice(0, 16)}`;
}

/**
 * Returns the SHA-256 of the previous hash and the fields. Each field is hashed as its byte count, ":" and its bytes, or as "-" if the
 * field is absent.
 */
function chainedHash(fields: AuditLink['fields'], before: string): string {
  const content = fields.map((field) => {
    if (!field.startsWith('+')) return '-';
    const value = field.slice(1);
    return `${Buffer.byteLength(value)}:${value}`;
  });
  return createHash('sha256').update(Buffer.from(before, 'hex')).update(content.join('')).digest('hex');
}

/**
 * Separates the audit log problems that an operator has acknowledged from all others. Acknowledgements are log entries. In a ledger with
 * seals, only sealed entries count, so an attacker who changes the log can't acknowledge the change.
 */
export async function partAccepted(
  { db, sealer }: { db: Sql; sealer: Sealer | null },
  problems: readonly LogProblem[],
): Promise<{ accepted: LogProblem[]; others: LogProblem[] }> {
  if (problems.length === 0) return { accepted: [], others: [] };
  const entries = (await readAcknowledged(db, NETWORKS)).filter(
    ({ seal }) => sealer === null || (seal !== null && sealer.open(SEALED_ACTION, seal).problem === null),
  );
  const names = new Set(entries.flatMap(({ detail }) => detail.accepted ?? []));
  const accepted = problems.filter(({ name }) => names.has(name));
  return { accepted, others: problems.filter(({ name }) => !names.has(name)) };
}
