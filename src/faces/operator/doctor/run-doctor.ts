import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../../core/domain/errors.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { keyMode } from '../../../core/domain/network.ts';
import { toIso } from '../../../core/domain/time.ts';
import { readDatabaseClock } from '../../../core/payments/clocks.ts';
import { reasonOf } from '../../../core/runtime/reason-of.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { pendingMigrations } from '../../../core/store/db/migrate.ts';
import type { Actor } from '../actor.ts';
import { limitTime } from '../limit-time.ts';
import { type Check, type DoctorDeps, type Finding, failed, type Look, STATES, type State, skipped } from './check.ts';
import { ENVIRONMENT_CHECKS, probeService, SERVICE_CHECKS } from './environment-checks.ts';
import { BACKUP_CHECKS, LEDGER_CHECKS, PROJECT_CHECKS } from './ledger-checks.ts';
import { askNodes, NODE_CHECKS } from './node-checks.ts';

export type CheckView = { name: string; state: State; says: Text; fix: Text | null };

/** `checks` lists the worst first; checks with the same state keep the order of the list. */
export type DoctorView = { good: boolean; asOf: string; counts: Record<State, number>; checks: CheckView[] };

/** A check that needs more time than this is reported as failed. */
const CHECK_MS = 6000;
/** Shorter than `CHECK_MS`, so the other checks learn that the database hangs before their own time is up. */
const NEEDS_MS = 2500;
const STATEMENT_MS = 5000;

/** Runs all checks in parallel, without changing anything. */
export async function runDoctor(
  deps: DoctorDeps,
  actor: Actor,
  { checks = CHECKS, limitMs = CHECK_MS }: { checks?: readonly Check[]; limitMs?: number } = {},
): Promise<DoctorView> {
  const { look, needs } = prepare(deps, actor);
  const found = await Promise.all(checks.map((check) => lookWithin(check, { look, needs, limitMs })));
  const views = STATES.flatMap((state) => found.filter((view) => view.state === state));
  const count = (state: State) => views.filter((view) => view.state === state).length;
  return {
    good: count('failed') === 0,
    asOf: toIso(deps.now()),
    counts: { failed: count('failed'), warning: count('warning'), good: count('good'), skipped: count('skipped') },
    checks: views,
  };
}

/** Merges checks with the same finding into one, with all their names. */
export function gatherChecks(checks: readonly CheckView[]): CheckView[] {
  const byWords = new Map<string, CheckView>();
  for (const check of checks) {
    const words = JSON.stringify([check.says, check.fix]);
    const same = byWords.get(words);
    byWords.set(words, same === undefined ? check : { ...same, name: `${same.name}, ${check.name}` });
  }
  return [...byWords.values()];
}

function prepare(deps: DoctorDeps, actor: Actor): { look: Look; needs: Needs } {
  const { settings, database, now, random } = deps;
  const opened = () => {
    if ('db' in database) return database;
    throw new Error('this check uses the database but does not declare it');
  };
  const ping = once(async () => {
    const sentAt = now();
    const databaseAt = await readDatabaseClock(opened().db);
    return { ownAt: (sentAt + now()) / 2, databaseAt };
  });
  const needs = needsOf(database, ping);
  const read: Look['read'] = async (work) =>
    opened().db.snapshot(async (tx) => {
      await limitTime(tx, STATEMENT_MS);
      return work(tx);
    });
  const readIfThere: Look['readIfThere'] = async (work) =>
    (await needs.database()) === null ? read(work).catch(() => null) : null;
  const look = {
    ...deps,
    ...{ actor, database: opened, databaseProblem: 'db' in database ? null : database.problem },
    ...{ ping, read, readIfThere },
    isLive: settings.networks.some(({ network }) => keyMode(network) === 'live'),
    askNodes: once(() => askNodes(settings.networks)),
    probe: once(async () => {
      const identity = await readIfThere(findLedgerIdentity);
      return probeService({ settings, random, ledgerId: identity?.id ?? null });
    }),
  };
  return { look, needs };
}

function once<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let asked: Promise<Answer> | null = null;
  return () => {
    asked ??= ask();
    return asked;
  };
}

/** Why something that a check needs is missing, or `null`. */
type Needs = Record<'database' | 'schema', () => Promise<string | null>>;

const NOT_THERE = 'there is no database to check: see the "database" check';
const SILENT = 'the database does not respond: see the "database" check';
const OTHER_SCHEMA = 'the schema does not match this release: see the "migrations" check';

function needsOf(database: DoctorDeps['database'], ping: Look['ping']): Needs {
  const answers = once(async () => {
    if (!('db' in database)) return NOT_THERE;
    return within(NEEDS_MS, ping()).then(
      (answer) => (answer === LATE ? SILENT : null),
      () => SILENT,
    );
  });
  const fits = async () => {
    const lack = await answers();
    if (lack !== null || !('db' in database)) return lack;
    return within(NEEDS_MS, pendingMigrations(database.db)).then(
      (pending) => (pending === LATE ? SILENT : pending === 0 ? null : OTHER_SCHEMA),
      () => OTHER_SCHEMA,
    );
  };
  return { database: answers, schema: once(fits) };
}

type Around = { look: Look; needs: Needs; limitMs: number };

async function lookWithin({ name, needs: need, look }: Check, { look: deps, needs, limitMs }: Around) {
  const work = async (): Promise<Finding> => {
    const lack = need === undefined ? null : await needs[need]();
    return lack === null ? look(deps) : skipped(lack);
  };
  const found = await within(limitMs, work()).catch(
    (error: unknown): Finding =>
      failed(
        say`the check failed to run: ${textOf(error)}`,
        'Fix the problem in the message, then run the check again.',
      ),
  );
  const late = failed(
    `did not finish within ${limitMs / 1000} s`,
    'Find out why this part hangs, then run the check again.',
  );
  const { state, says, fix = null } = found === LATE ? late : found;
  return { name, state, says, fix };
}

function textOf(error: unknown): Text {
  return error instanceof AppError ? error.text : reasonOf(error);
}

const LATE: unique symbol = Symbol('late');

/** Returns the answer, or `LATE` if it took too long. Later answers and errors are ignored. */
async function within<Answer>(ms: number, answer: Promise<Answer>): Promise<Answer | typeof LATE> {
  const limit = new AbortController();
  answer.catch(() => undefined);
  const late = delay(ms, undefined, { signal: limit.signal }).then(
    (): typeof LATE => LATE,
    (): typeof LATE => LATE,
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    limit.abort();
  }
}

/** All checks, in display order. */
export const CHECKS: readonly Check[] = [
  ...[...ENVIRONMENT_CHECKS, ...LEDGER_CHECKS, ...NODE_CHECKS, ...SERVICE_CHECKS, ...PROJECT_CHECKS, ...BACKUP_CHECKS],
];
