import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, chown, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePorts } from './free-ports.ts';
import { makeCertificate, TLS_DIRECTORY } from './make-certificate.ts';
import { createMember, type Member } from './member.ts';
import { type Program, type ProgramUser, startProgram, stopProgram } from './program.ts';
import type { Programs } from './requirements.ts';

/** A replicated PostgreSQL on this machine: one etcd, three members, and the proxy that leads to the primary. */
export type Cluster = {
  /** For Quittance: by the proxy, to the primary. */
  databaseUrl: string;
  /** The same way, as the user who owns the tables: for what migrates. */
  databaseOwnerUrl: string;
  directory: string;
  members: readonly Member[];
  /** As superuser, straight to one member. */
  connectionOf(member: Member): pg.ClientConfig;
  /** What each member's Patroni says of itself; `null` where none answers. */
  look(): Promise<(MemberState | null)[]>;
  /** Waits until there is one primary, a synchronous standby, and every other member follows. Answers the primary. */
  untilWhole(limitMs?: number): Promise<Member>;
  stop(): Promise<void>;
};

export type MemberState = {
  role: string;
  state: string;
  timeline?: number;
  /** Whether it may become the primary: it has every commit that was acknowledged. */
  sync_standby?: boolean;
  replication?: { application_name: string; state: string }[];
};

const MEMBER_COUNT = 3;
/** Making a database, and two copies of it. */
const START_LIMIT_MS = 120_000;
const ETCD_STOP_MS = 5000;
const PROXY_STOP_MS = 2000;

/** Starts everything under a new temporary directory on free ports, as a user that is not root. A start that fails leaves nothing. */
export async function startCluster(programs: Programs): Promise<Cluster> {
  const user = await chooseUser();
  await expectToRun(programs, user);
  const directory = await mkdtemp(join(tmpdir(), 'quittance-ha-'));
  const stops: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    await own(directory, user);
    return await startParts({ programs, user, directory, stops, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

type Parts = {
  programs: Programs;
  user: ProgramUser | null;
  directory: string;
  stops: (() => Promise<unknown>)[];
  stop(): Promise<void>;
};

async function startParts({ programs, user, directory, stops, stop }: Parts): Promise<Cluster> {
  const ports = await freePorts(2 * MEMBER_COUNT + 3);
  const next = () => ports.pop() as number;
  const shared = { setpriv: programs.setpriv, user };
  const etcdHosts = `127.0.0.1:${next()}`;
  const etcd = await startEtcd({ ...shared, programs, directory, client: etcdHosts, peer: `127.0.0.1:${next()}` });
  stops.push(() => stopProgram(etcd, ETCD_STOP_MS));

  const tls = await makeCertificate({ openssl: programs.openssl, directory, user });
  const configFile = join(directory, 'patroni.yml');
  const config = await readFile(new URL('patroni.yml', import.meta.url), 'utf8');
  await writeFile(configFile, config.replaceAll(TLS_DIRECTORY, tls.directory));
  const passwords = { superuser: secret(), replication: secret(), quittance: secret(), owner: secret() };
  const members: Member[] = [];
  // Together, or the last ones would change the primary while the first ones stop.
  stops.push(() => Promise.all(members.map((member) => member.stop())));
  for (let number = 1; number <= MEMBER_COUNT; number += 1) {
    const home = join(directory, `pg${number}`);
    await mkdir(home);
    await own(home, user);
    const member = createMember({
      name: `pg${number}`,
      port: next(),
      restPort: next(),
      directory: home,
      postgresBin: programs.postgresBin,
      etcdHosts,
      etcdApi: programs.etcdApi,
      configFile,
      passwords,
      program: { ...shared, command: programs.patroni },
    });
    members.push(member);
    await member.start();
  }
  const bind = `127.0.0.1:${next()}`;
  const proxy = await startProgram({
    ...shared,
    command: programs.haproxy,
    // The other user may not be able to read where this program lies.
    args: ['-db', '-f', await copyInto(directory, 'haproxy.cfg')],
    env: proxyEnvironment(bind, members),
    cwd: directory,
    logFile: join(directory, 'haproxy.log'),
  });
  stops.push(() => stopProgram(proxy, PROXY_STOP_MS));
  const superuser = (port: number, database: string): pg.ClientConfig => ({
    ...{ host: '127.0.0.1', port, user: 'postgres', password: passwords.superuser, database },
    ...{ ssl: { ca: tls.ca }, connectionTimeoutMillis: 5000 },
  });
  const look = () => Promise.all(members.map(stateOf));
  const cluster: Cluster = {
    databaseUrl: `postgres://quittance:${passwords.quittance}@${bind}/quittance?sslmode=verify-full&sslrootcert=${tls.caFile}`,
    databaseOwnerUrl: `postgres://quittance_owner:${passwords.owner}@${bind}/quittance?sslmode=verify-full&sslrootcert=${tls.caFile}`,
    directory,
    members,
    connectionOf: ({ port }) => superuser(port, 'quittance'),
    look,
    untilWhole: (limitMs = START_LIMIT_MS) => untilWhole(members, limitMs),
    stop,
  };
  const primary = await cluster.untilWhole();
  await createDatabase(superuser(primary.port, 'postgres'), passwords);
  return cluster;
}

/** PostgreSQL refuses to run as root. */
async function chooseUser(): Promise<ProgramUser | null> {
  if (process.getuid?.() !== 0) return null;
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const user = lines.find(([name]) => name === 'postgres') ?? lines.find(([name]) => name === 'nobody');
  if (user === undefined) throw new Error('there is neither a user "postgres" nor "nobody" to run PostgreSQL as');
  return { uid: Number(user[2]), gid: Number(user[3]) };
}

/**
 * Throws if the user can't run Patroni, for example because Patroni is below root's home directory. Otherwise setpriv, which still has
 * root's rights, starts it, but Patroni can't read its own modules and never connects to PostgreSQL. `env` no longer has these rights.
 */
async function expectToRun({ setpriv, patroni }: Programs, user: ProgramUser | null): Promise<void> {
  if (user === null) return;
  const args = [`--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups', 'env', patroni, '--version'];
  await promisify(execFile)(setpriv, args).catch((error: Error & { stderr?: string }) => {
    const why = error.stderr?.trim() || error.message;
    throw new Error(`user ${user.uid} can't run ${patroni}: install it where this user can read it. ${why}`);
  });
}

async function own(directory: string, user: ProgramUser | null): Promise<void> {
  await chmod(directory, 0o755);
  if (user !== null) await chown(directory, user.uid, user.gid);
}

async function copyInto(directory: string, name: string): Promise<string> {
  const copy = join(directory, name);
  await copyFile(fileURLToPath(new URL(name, import.meta.url)), copy);
  return copy;
}

function startEtcd({
  programs,
  directory,
  client,
  peer,
  ...shared
}: Pick<Parts, 'programs' | 'user' | 'directory'> & {
  setpriv: string;
  client: string;
  peer: string;
}): Promise<Program> {
  return startProgram({
    ...shared,
    command: programs.etcd,
    args: [],
    env: {
      ETCD_NAME: 'etcd1',
      ETCD_DATA_DIR: join(directory, 'etcd'),
      ETCD_LISTEN_CLIENT_URLS: `http://${client}`,
      ETCD_ADVERTISE_CLIENT_URLS: `http://${client}`,
      ETCD_LISTEN_PEER_URLS: `http://${peer}`,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: `http://${peer}`,
      ETCD_INITIAL_CLUSTER: `etcd1=http://${peer}`,
      ETCD_ENABLE_V2: String(programs.etcdApi === 'v2'),
    },
    cwd: directory,
    logFile: join(directory, 'etcd.log'),
  });
}

function proxyEnvironment(bind: string, members: readonly Member[]): Record<string, string> {
  const entries = members.flatMap(({ port, restUrl }, index) => [
    [`PG${index + 1}`, `127.0.0.1:${port}`],
    [`REST${index + 1}`, new URL(restUrl).port],
  ]);
  return { BIND: bind, ...Object.fromEntries(entries) };
}

/** As docs/guides/postgresql.md says: the service owns nothing. */
async function createDatabase(
  connection: pg.ClientConfig,
  passwords: { quittance: string; owner: string },
): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query(
      `create role quittance_owner login password '${passwords.owner}'; create role quittance_runtime;
       create role quittance login password '${passwords.quittance}' in role quittance_runtime`,
    );
    await client.query('create database quittance owner quittance_owner');
  } finally {
    await client.end();
  }
}

function secret(): string {
  return randomBytes(18).toString('hex');
}

const LOOK_TIMEOUT_MS = 2000;

/** Patroni answers 503 where PostgreSQL does not run, with the same body. */
async function stateOf({ restUrl }: Member): Promise<MemberState | null> {
  try {
    const response = await fetch(`${restUrl}/patroni`, { signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) });
    return (await response.json()) as MemberState;
  } catch {
    return null;
  }
}

async function untilWhole(members: readonly Member[], limitMs: number): Promise<Member> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const states = await Promise.all(members.map(stateOf));
    const primary = wholeUnder(states);
    if (primary !== -1) return members[primary] as Member;
    if (performance.now() > deadline) {
      throw new Error(`the cluster is not whole within ${limitMs} ms; last seen: ${JSON.stringify(states)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}

/** The index of the primary that everyone else streams from, with a standby that may take its place; -1 while it is not so. */
function wholeUnder(states: readonly (MemberState | null)[]): number {
  const primaries = states.flatMap((state, index) => (isPrimary(state) ? [index] : []));
  const [index] = primaries;
  if (primaries.length !== 1 || index === undefined) return -1;
  const { replication = [], timeline } = states[index] as MemberState;
  const isFollowed = replication.filter(({ state }) => state === 'streaming').length === states.length - 1;
  const hasSuccessor = states.some((state) => state?.sync_standby === true);
  const isRunning = states.every((state) => state?.state === 'running' && state.timeline === timeline);
  return isFollowed && hasSuccessor && isRunning ? index : -1;
}

/** Patroni's word for the role was master before its release 4. */
export function isPrimary(state: MemberState | null): boolean {
  return state?.role === 'master' || state?.role === 'primary';
}
