import type { Text } from '../../domain/message.ts';
import { joinTexts } from '../../domain/message.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import type { NodeReport } from './ask-nodes.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Probed } from './probe-service.ts';

/** The worst first. */
export const STATES = ['failed', 'warning', 'good', 'skipped'] as const;
export type State = (typeof STATES)[number];

/** What a check saw. `fix`: what to do about it. */
export type Finding = { state: State; says: Text; fix?: Text };

export type DoctorDatabase = { kind: 'external' | 'embedded'; db: Database };

/** `database`: or why there is none. */
export type DoctorDeps = {
  settings: DoctorSettings;
  database: DoctorDatabase | { problem: string };
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  nodeVersion: string;
  /** Says of an error of the database what it means here. */
  describeError(error: unknown): string;
};

/** What both clocks showed (Unix ms), ours in the middle of the request. */
type Ping = { ownAt: number; databaseAt: number };

/** What the checks share: nodes and service are asked once for all of them. */
export type Look = Omit<DoctorDeps, 'database'> & {
  actor: Actor;
  /** Why there is no database; `null`: there is. */
  databaseProblem: string | null;
  /** Asks the database for its time, once for all. */
  ping(): Promise<Ping>;
  /** Only for checks that need the database. */
  database(): DoctorDatabase;
  /** Reads in a transaction of its own, each statement of which is given up in time. */
  read<Output>(work: (tx: Sql) => Promise<Output>): Promise<Output>;
  /** The same; `null` where there is no database, or it does not answer. */
  readIfThere<Output>(work: (tx: Sql) => Promise<Output>): Promise<Output | null>;
  /** Whether real money is at stake here. */
  isLive: boolean;
  askNodes(): Promise<readonly NodeReport[]>;
  probe(): Promise<Probed>;
};

/** `name` is for programs and never changes. `needs`: a database that answers, or one with the schema of this release, too. */
export type Check = { name: string; needs?: 'database' | 'schema'; look(deps: Look): Promise<Finding> };

export const good = (says: Text): Finding => ({ state: 'good', says });
export const warning = (says: Text, fix: Text): Finding => ({ state: 'warning', says, fix });
export const failed = (says: Text, fix: Text): Finding => ({ state: 'failed', says, fix });
export const skipped = (says: Text): Finding => ({ state: 'skipped', says });

/** What only real money suffers from. */
export function atStake({ isLive }: Pick<Look, 'isLive'>, says: Text, fix: Text): Finding {
  return isLive ? failed(says, fix) : warning(says, fix);
}

/** Several findings of one kind are one mistake. */
const MAX_TOLD = 5;

/** One finding out of those about several nodes, projects or networks: the worst ones are told. `none`: there were none at all. */
export function worstOf(findings: readonly Finding[], none: Finding): Finding {
  const state = STATES.find((each) => findings.some((finding) => finding.state === each));
  const worst = findings.filter((finding) => finding.state === state);
  const [first] = worst;
  if (state === undefined || first === undefined) return none;
  const told = worst.slice(0, MAX_TOLD).map(({ says }) => says);
  const more = worst.length > MAX_TOLD ? [`and ${worst.length - MAX_TOLD} more`] : [];
  return {
    state,
    says: joinTexts([...told, ...more], '; '),
    ...(first.fix === undefined ? {} : { fix: first.fix }),
  };
}

/** `90 s`, `12 min`, `5 h`, `9 days`. */
export function spell(ms: number): string {
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} days`;
}
