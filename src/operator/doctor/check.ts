import { joinTexts, type Text } from '../../domain/message.ts';
import type { Network } from '../../domain/network.ts';
import type { NodeSpec } from '../../domain/node.ts';
import type { ProbeAnswer } from '../../domain/probe.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { ManifestSettings } from '../../payments/manifest/read-installed.ts';
import type { KeySettings } from '../../runtime/open-key-ring.ts';
import type { Database, Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';

/** A network as it is configured here. */
export type DoctorNetwork = { network: Network; nodes: readonly NodeSpec[]; agreement: number };

/** What the environment of the service says. */
export type DoctorSettings = KeySettings & {
  /** What is odd about the settings themselves. */
  warnings: readonly string[];
  networks: readonly DoctorNetwork[];
  /** Why the nodes are not known; `null`: they are. */
  networkProblem: string | null;
  /** Where the API of this machine listens; `null`: it is told nobody, or this process has none. */
  localUrl: string | null;
  /** Where this machine says why it is not ready; `null`: nowhere, or at any free port. */
  metricsUrl: string | null;
  publicUrl: string | null;
  databasePoolSize: number;
  trustProxy: readonly string[];
  rowMacs: 'ledger' | 'off' | 'warn' | 'require';
  /** Where the service makes backups, and how often; `null`: it makes none. */
  backups: Readonly<{ directory: string; intervalMs: number }> | null;
  addressManifest: ManifestSettings | null;
};

/** What the environment of a process says, but for its networks. `host` and `port`: where its API is to listen. */
export type ConfiguredProcess = Omit<DoctorSettings, 'networks' | 'networkProblem' | 'localUrl' | 'metricsUrl'> & {
  metrics: { host: string; port: number } | null;
  host: string;
  port: number;
  roles: readonly string[];
};

/** `sandboxUrl`: where the API of a sandbox is, which nobody configured. */
type FoundNetworks = { networks: readonly DoctorNetwork[]; problem: string | null; sandboxUrl: string | null };

export function doctorSettings(
  config: ConfiguredProcess,
  { networks, problem, sandboxUrl }: FoundNetworks,
): DoctorSettings {
  const { metrics, publicUrl, roles } = config;
  const own = roles.includes('api') ? urlOf(config) : null;
  return {
    ...{ ...config, networks, networkProblem: problem },
    ...{ localUrl: sandboxUrl ?? own, publicUrl: publicUrl ?? sandboxUrl },
    metricsUrl: metrics === null ? null : urlOf(metrics),
  };
}

/** Where this machine asks what listens there. */
function urlOf({ host, port }: { host: string; port: number }): string | null {
  const name = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return port === 0 ? null : `http://${name}:${port}`;
}

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

export type Block = { number: number; id: string; time: UnixMs };

/**
 * What a node said. `problem`: why it said nothing of use. `atCommon`: its block at the greatest height that all nodes of the network call
 * irreversible.
 */
export type NodeReport = {
  network: Network;
  spec: NodeSpec;
  origin: string;
  problem: string | null;
  genesisId: string | null;
  head: Block | null;
  solid: Block | null;
  atCommon: Block | null;
  /** Of the fastest of its answers. */
  answerMs: number | null;
};

/** An answer in the parts in which it came. `certificateEnds`: Unix ms, `null` without TLS. */
export type UrlAnswer = {
  status: number;
  encoding: string;
  parts: readonly { text: string; atMs: number }[];
  certificateEnds: number | null;
};

/** `code`: as Node.js names what went wrong on the way. */
export type UrlRefusal = { code: string; reason: string };

/**
 * What the service answers on this machine, `null` where nothing listens, why it does (`inner`, of its metrics port), and what comes back
 * through the public URL, `null` where there is none. `probe`: what the service said of how the request came; `null` where it was not ours that answered, or it cannot be told.
 */
export type Probed = {
  local: UrlAnswer | UrlRefusal | null;
  inner: UrlAnswer | UrlRefusal | null;
  public: UrlAnswer | UrlRefusal | null;
  probe: ProbeAnswer | null;
  isLedgerKnown: boolean;
};

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

export const check = (name: string, look: Check['look']): Check => ({ name, look });
export const databaseCheck = (name: string, look: Check['look']): Check => ({ name, needs: 'database', look });
export const schemaCheck = (name: string, look: Check['look']): Check => ({ name, needs: 'schema', look });

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
