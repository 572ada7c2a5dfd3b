import { DAY_MS } from '../../domain/capacity.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Loop } from '../../runtime/loop.ts';
import { type AuditHead, findAuditHead } from '../../store/access/audit-log.ts';
import { settleAlarms, tellAlarm } from '../../store/chain/tell-alarms.ts';
import type { Seals } from '../../store/db/database.ts';
import { SEALED_ACTION } from '../../store/db/sealed-tables.ts';
import { type ExternalCheckpoint, findLedgerLine, type LedgerLine } from '../external-checkpoint.ts';
import { guardWhileLeading, type Leading } from '../leading.ts';
import { whileLeading } from '../watching.ts';
import {
  BEGINNING,
  type ChainVerification,
  type LogProblem,
  type Place,
  partAccepted,
  type VerifiedPage,
  walkLog,
} from './verify-audit-chain.ts';

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
