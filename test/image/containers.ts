import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../deb/bare-debian.ts';

/** How a container must run, according to compose and the image together. */
export type Container = {
  name: string;
  root: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
  uid: number;
  isReadOnly: boolean;
  /** If `false`, it has the rights that Docker leaves it. */
  hasNoRights: boolean;
  tmpfs: readonly string[];
  /** `[path here, path inside, read-only]` */
  binds: readonly (readonly [string, string, boolean])[];
};

export type Running = {
  pid(): Promise<number>;
  /** Runs a command inside with the container's environment, and returns its output. */
  exec(...command: string[]): Promise<string>;
  kill(signal: string): Promise<void>;
  /** The exit code. */
  ended: Promise<number>;
  output(): string;
};

/** The rights that Docker leaves a container, as far as PostgreSQL and Caddy need them. */
const USUAL = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_SETGID', 'CAP_SETUID', 'CAP_NET_BIND_SERVICE'];

/** A single network in which each host has its own address, with no way out. */
export type Network = {
  path: string;
  hosts: Readonly<Record<string, string>>;
  inside(args: string[]): ChildProcess;
  stop(): void;
};

export async function openNetwork(hosts: Readonly<Record<string, string>>): Promise<Network> {
  const commands = [
    'ip link set lo up',
    ...Object.values(hosts).map((address) => `ip address add ${address}/24 dev lo`),
    'echo ready',
    'exec sleep infinity',
  ];
  const holder = spawn('unshare', ['--net', 'sh', '-ec', commands.join('; ')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((done, fail) => {
    holder.stdout.once('data', () => done());
    holder.once('exit', (code) => fail(new Error(`no network of its own: ${code}`)));
  });
  const path = `/proc/${holder.pid}/ns/net`;
  return {
    path,
    hosts,
    inside: (args) => spawn('nsenter', [`--net=${path}`, '--', ...args], { stdio: ['pipe', 'pipe', 'inherit'] }),
    stop: () => void holder.kill('SIGKILL'),
  };
}

/** crun refuses a machine with both kinds of cgroups, even if it's told to use none, so it only sees the new kind. */
const ONE_HIERARCHY = 'mount -t cgroup2 none /sys/fs/cgroup && exec crun "$@"';

/** Starts containers with crun. State and bundles are in `folder`. */
export function createRuntime(folder: string, network: Network) {
  const crun = (...args: string[]) => [
    ...['--mount', 'sh', '-c', ONE_HIERARCHY, 'crun'],
    ...['--root', join(folder, 'crun'), '--cgroup-manager=disabled', ...args],
  ];
  return async (container: Container): Promise<Running> => {
    const { name } = container;
    const bundle = join(folder, name);
    await mkdir(bundle);
    const hosts = Object.entries({ localhost: '127.0.0.1', ...network.hosts }).map(([host, ip]) => `${ip} ${host}\n`);
    await writeFile(join(bundle, 'hosts'), hosts.join(''));
    await writeFile(
      join(bundle, 'config.json'),
      JSON.stringify(specOf(container, join(bundle, 'hosts'), network.path)),
    );
    const child = spawn('unshare', crun('run', '--bundle', bundle, name), { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (text: string) => {
        output += text;
      });
    }
    const env = Object.entries(container.env).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
    return {
      pid: async () => JSON.parse(await run('unshare', crun('state', name))).pid,
      exec: (...command) =>
        run('unshare', crun('exec', ...env, '--user', `${container.uid}`, name, ...command)).catch((error) => {
          throw new Error(`${command.join(' ')}: ${error.stdout}${error.stderr}`);
        }),
      kill: async (signal) => void (await run('unshare', crun('kill', name, signal))),
      ended: new Promise((resolve) => child.once('exit', (code) => resolve(code ?? -1))),
      output: () => output,
    };
  };
}

function specOf(
  { root, args, env, uid, isReadOnly, hasNoRights, tmpfs, binds }: Container,
  hosts: string,
  net: string,
) {
  const rights = hasNoRights ? [] : USUAL;
  return {
    ociVersion: '1.0.2',
    root: { path: root, readonly: isReadOnly },
    process: {
      user: { uid, gid: uid },
      args,
      env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
      cwd: '/',
      noNewPrivileges: hasNoRights,
      capabilities: { bounding: rights, effective: rights, permitted: rights, inheritable: [], ambient: [] },
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
      { destination: '/dev/shm', type: 'tmpfs', source: 'shm', options: ['nosuid', 'nodev', 'size=256m'] },
      ...tmpfs.map((destination) => ({ destination, type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev'] })),
      ...[...binds, [hosts, '/etc/hosts', true] as const].map(([source, destination, isFixed]) => ({
        ...{ destination, source, type: 'bind' },
        options: ['bind', isFixed ? 'ro' : 'rw'],
      })),
    ],
    linux: {
      namespaces: [
        { type: 'pid' },
        { type: 'mount' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'network', path: net },
      ],
    },
  };
}
