import { joinTexts, type Text } from '../../../core/domain/message.ts';
import type { Network } from '../../../core/domain/network.ts';
import type { NodeSpec } from '../../../core/domain/node.ts';
import type { ProbeAnswer } from '../../../core/domain/probe.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { ManifestSettings } from '../../../core/payments/manifest/read-installed.ts';
import type { KeySettings } from '../../../core/runtime/open-key-ring.ts';
import type { Database, Sql } from '../../../core/store/db/database.ts';
import type { Actor } from '../actor.ts';

/** A network, with its settings on this machine. */
export type DoctorNetwork = { network: Network; nodes: readonly NodeSpec[]; agreement: number };

/** The service's settings, as read from its environment. */
export type DoctorSettings = KeySettings & {
  /** Warnings about settings that may be mistakes. */
  warnings: readonly string[];
  networks: readonly DoctorNetwork[];
  /** Why the nodes aren't known, or `null`. */
  networkProblem: string | null;
  /** Where this machine's API listens. `null` if that isn't known or this process has no API. */
  localUrl: string | null;
  /** Where this machine reports why it isn't ready. `null` if it has no such port, or a random one. */
  metricsUrl: string | null;
  publicUrl: string | null;
  databasePoolSize: number;
  trustProxy: readonly string[];
  rowMacs: 'ledger' | 'off' | 'warn' | 'require';
  /** Where the service stores its backups and how often it makes them. `null` if it makes none. */
  backups: Readonly<{ directory: string; intervalMs: number }> | null;
  addressManifest: ManifestSettings | null;
};

/** A process's settings, without its networks. `host` and `port` are where its API should listen. */
export type ConfiguredProcess = Omit<DoctorSettings, 'networks' | 'networkProblem' | 'localUrl' | 'metricsUrl'> & {
  metrics: { host: string; port: number } | null;
  host: string;
  port: number;
  roles: readonly string[];
};

/** `sandboxUrl` is the API URL of a sandbox, which has no configured URL. */
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

/** Returns the URL where this machine can reach one of its own ports. */
function urlOf({ host, port }: { host: string; port: number }): string | null {
  const name = ['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return port === 0 ? null : `http://${name}:${port}`;
}

/** Worst first. */
export const STATES = ['failed', 'warning', 'good', 'skipped'] as const;
export type State = (typeof STATES)[number];

/** The result of a check. `fix` is what to do about it. */
export type Finding = { state: State; says: Text; fix?: Text };

export type DoctorDatabase = { kind: 'external' | 'embedded'; db: Database };

/** `database` is the database, or the reason why there's none. */
export type DoctorDeps = {
  settings: DoctorSettings;
  database: DoctorDatabase | { problem: string };
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  nodeVersion: string;
  /** Explains a database error, and takes this machine's setup into account. */
  describeError(error: unknown): string;
};

/** The times of both clocks in Unix ms. Our own time is taken halfway through the request. */
type Ping = { ownAt: number; databaseAt: number };

export type Block = { number: number; id: string; time: UnixMs };

/**
 * A node's answers. `problem` is why its responses can't be used. `atCommon` is its block at the greatest height that all of the network's
 * nodes call irreversible.
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
  /** How long its fastest response took. */
  answerMs: number | null;
};

/** An HTTP response, with its parts as they arrived. `certificateEnds` is in Unix ms, and `null` without TLS. */
export type UrlAnswer = {
  status: number;
  encoding: string;
  parts: readonly { text: string; atMs: number }[];
  certificateEnds: number | null;
};

/** `code` is the Node.js error code. */
export type UrlRefusal = { code: string; reason: string };

/**
 * The service's responses: on this machine (`local`, `null` if nothing listens), from its metrics port (`inner`, which explains readiness),
 * and through the public URL (`null` if there's none). `probe` is how the service saw that request; `null` if another server responded or
 * if that isn't known.
 */
export type Probed = {
  local: UrlAnswer | UrlRefusal | null;
  inner: UrlAnswer | UrlRefusal | null;
  public: UrlAnswer | UrlRefusal | null;
  probe: ProbeAnswer | null;
  isLedgerKnown: boolean;
};

/** The state that all checks share so that nodes and the service are queried only once. */
export type Look = Omit<DoctorDeps, 'database'> & {
  actor: Actor;
  /** Why there's no database, or `null`. */
  databaseProblem: string | null;
  /** Reads the database's clock, once for all checks. */
  ping(): Promise<Ping>;
  /** Returns the database, for checks that need it. */
  database(): DoctorDatabase;
  /** Reads in its own transaction, where each statement has a timeout. */
  read<Output>(work: (tx: Sql) => Promise<Output>): Promise<Output>;
  /** Like `read`, but returns `null` if there's no database or it doesn't respond. */
  readIfThere<Output>(work: (tx: Sql) => Promise<Output>): Promise<Output | null>;
  /** Whether real money is at stake. */
  isLive: boolean;
  askNodes(): Promise<readonly NodeReport[]>;
  probe(): Promise<Probed>;
};

/**
 * `name` is for programs and never changes. `needs` is `database` if the database must respond, and `schema` if it must also have this
 * release's schema.
 */
export type Check = { name: string; needs?: 'database' | 'schema'; look(deps: Look): Promise<Finding> };

export const check = (name: string, look: Check['look']): Check => ({ name, look });
export const databaseCheck = (name: string, look: Check['look']): Check => ({ name, needs: 'database', look });
export const schemaCheck = (name: string, look: Check['look']): Check => ({ name, needs: 'schema', look });

export const good = (says: Text): Finding => ({ state: 'good', says });
export const warning = (says: Text, fix: Text): Finding => ({ state: 'warning', says, fix });
export const failed = (says: Text, fix: Text): Finding => ({ state: 'failed', says, fix });
export const skipped = (says: Text): Finding => ({ state: 'skipped', says });

/** Reports a problem that is serious only if there's real money. Otherwise it's a warning. */
export function atStake({ isLive }: Pick<Look, 'isLive'>, says: Text, fix: Text): Finding {
  return isLive ? failed(says, fix) : warning(says, fix);
}

/** Several findings of the same kind usually have the same cause. */
const MAX_TOLD = 5;

/** Combines findings about several nodes, projects or networks into one that shows the worst. `none` is used if there are no findings. */
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

/** Formats a duration: `90 s`, `12 min`, `5 h`, `9 days`. */
export function spell(ms: number): string {
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86_400)} days`;
}
