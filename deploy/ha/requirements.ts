import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Where the programs of a replicated PostgreSQL are on this machine. */
export type Programs = {
  etcd: string;
  /** By which interface of etcd this Patroni keeps its lock safely. */
  etcdApi: EtcdApi;
  patroni: string;
  haproxy: string;
  setpriv: string;
  openssl: string;
  postgresBin: string;
};

export type EtcdApi = 'v2' | 'v3';

/** The Debian packages that bring them. */
const PACKAGES = 'patroni etcd-server haproxy postgresql openssl';

/** Finds the programs, or says in a sentence what is missing and how it is installed. Installs nothing. */
export async function findPrograms(): Promise<Programs | string> {
  const [etcd, patroni, haproxy, setpriv, openssl, postgresBin] = await Promise.all([
    findOnPath('etcd'),
    findOnPath('patroni'),
    findOnPath('haproxy'),
    findOnPath('setpriv'),
    findOnPath('openssl'),
    findPostgres(),
  ]);
  const found = {
    etcd,
    patroni,
    haproxy,
    setpriv,
    openssl,
    'PostgreSQL with pg_basebackup and pg_rewind': postgresBin,
  };
  const missing = Object.entries(found).flatMap(([name, path]) => (path === null ? [name] : []));
  if (etcd && patroni && haproxy && setpriv && openssl && postgresBin) {
    const etcdApi = await chooseEtcdApi(patroni);
    if (etcdApi === null) return `${patroni} --version does not tell its version`;
    return { etcd, etcdApi, patroni, haproxy, setpriv, openssl, postgresBin };
  }
  return `not installed: ${missing.join(', ')}; on Debian: apt-get install ${PACKAGES}`;
}

/**
 * Before May 2023 Patroni overwrote the lock in etcd v3 without looking at whose it is when its own had run out while it stood still: a
 * former primary that wakes up becomes the primary again, without what was acknowledged meanwhile (patroni/patroni#2689). By etcd v2 it
 * compares and sets.
 */
const SAFE_BY_V3 = [3, 1, 0] as const;

async function chooseEtcdApi(patroni: string): Promise<EtcdApi | null> {
  const { stdout } = await promisify(execFile)(patroni, ['--version']).catch(() => ({ stdout: '' }));
  const [, ...digits] = /(\d+)\.(\d+)\.(\d+)/.exec(stdout) ?? [];
  const version = digits.map(Number);
  if (version.length !== SAFE_BY_V3.length) return null;
  const index = version.findIndex((part, place) => part !== SAFE_BY_V3[place]);
  return index === -1 || (version[index] ?? 0) > (SAFE_BY_V3[index] ?? 0) ? 'v3' : 'v2';
}

/** An ordinary user's PATH often leaves out the directories of system programs. */
const DIRECTORIES = [...(process.env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/usr/local/bin'];

async function findOnPath(name: string): Promise<string | null> {
  for (const directory of DIRECTORIES) {
    const path = join(directory, name);
    if (directory !== '' && (await isExecutable(path))) return path;
  }
  return null;
}

/** Debian keeps each release in a directory of its own; the newest that has all the tools is taken. */
async function findPostgres(): Promise<string | null> {
  const home = '/usr/lib/postgresql';
  const releases = (await readdir(home).catch(() => [])).sort((a, b) => Number(b) - Number(a));
  for (const release of releases) {
    const bin = join(home, release, 'bin');
    const tools = ['postgres', 'initdb', 'pg_basebackup', 'pg_rewind', 'pg_controldata'];
    const all = await Promise.all(tools.map((tool) => isExecutable(join(bin, tool))));
    if (all.every(Boolean)) return bin;
  }
  return null;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
