import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { missingProgram } from '../deb/bare-debian.ts';
import { createSteps } from '../deb/steps.ts';
import { fillVariables, readEnvFile } from '../support/compose.ts';
import { addressOf } from '../support/full-ledger.ts';
import { buildImages, type Images } from './build-images.ts';
import { type Container, createRuntime, type Network, openNetwork, type Running } from './containers.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const SITE = 'pay.localhost';
const HOSTS = { chain: '10.213.0.2', postgres: '10.213.0.3', quittance: '10.213.0.4', caddy: '10.213.0.5' };
const UID = 10001;
const PROGRAMS = { buildah: 'buildah', crun: 'crun', mmdebstrap: 'mmdebstrap', ip: 'iproute2' };
/** A larger image is no longer "slim". Includes what Debian's packages have beyond the published base. */
const MOST_MB = 180;

type Service = {
  environment?: Record<string, string>;
  volumes?: string[];
  command?: string;
  healthcheck?: { test: string[] };
  read_only?: boolean;
  cap_drop?: string[];
  tmpfs?: string[];
};

test('the images are built by their recipe, and the services of compose.yaml take an order over TLS to PAID and to a verified backup', async (context) => {
  const missing = await missingProgram(PROGRAMS);
  if (missing !== null) return context.skip(missing);
  const step = createSteps();
  const folder = await mkdtemp(join(tmpdir(), 'quittance-image-'));
  // The containers' users must be able to pass through it.
  await chmod(folder, 0o711);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const images = await buildImages(folder, step);
  onTestFinished(images.remove);
  const sizes = { quittance: await images.sizeMb('quittance'), embedded: await images.sizeMb('embedded') };
  step(`${sizes.quittance} MB and ${sizes.embedded} MB`);
  expect(sizes.quittance).toBeLessThanOrEqual(MOST_MB);

  const network = await openNetwork(HOSTS);
  onTestFinished(network.stop);
  const world = await openWorld(folder, images, network);
  const env = await world.setUp();
  step('quittance setup, in the image');
  const chain = startPayer(network);
  const { nodes, usdt } = await chain.next();

  const postgres = await world.start('postgres', env);
  await world.untilHealthy(postgres);
  const migrate = await world.start('migrate', env);
  expect([await migrate.ended, migrate.output()]).toEqual([0, expect.any(String)]);
  step('the service postgres is healthy, migrate has ended');
  const own = { ...env, QUITTANCE_DEVNET_NODES: nodes, QUITTANCE_DEVNET_USDT: usdt };
  const service = await world.start('quittance', own);
  await world.untilHealthy(service);
  step('the service quittance is healthy');
  expect(await readRights(service)).toEqual({ Uid: UID, CapEff: 0, CapBnd: 0, NoNewPrivs: 1 });
  await expect(service.exec('/bin/touch', '/app/anything')).rejects.toThrow(/Read-only file system/);
  const caddy = await world.start('caddy', env);

  const quittance = (...args: string[]) =>
    service.exec('/usr/local/bin/node', '/app/bin/quittance.js', '--json', ...args).then(JSON.parse);
  await quittance('project', 'create', '--name', 'My shop', '--network', 'devnet');
  await quittance('address', 'add', addressOf(1));
  const { apiKey } = await quittance('key', 'create');
  const authorities = join(folder, 'volume-caddy/caddy/pki/authorities/local');
  await expect.poll(() => readdir(authorities).catch(() => [])).toContain('root.crt');
  const ca = join(authorities, 'root.crt');
  const sell = async (order: string) => {
    chain.tell({ order, url: `https://${SITE}`, apiKey, ca, at: HOSTS.caddy });
    expect(await chain.next(), caddy.output()).toEqual({
      status: 'PAID',
      isAddressShown: true,
      checkoutUrl: expect.stringMatching(`^https://${SITE}/`),
    });
  };
  await sell('order-1');
  step('project, address, key and invoice; paid; PAID over TLS');
  await expect
    .poll(() => readdir(join(folder, 'volume-backups')), { timeout: 120_000 })
    .toContainEqual(expect.stringMatching(/\.backup\.sha256$/));
  step('the first backup is made and verified');
  await service.kill('SIGTERM');
  expect(await service.ended).toBe(0);
  step('quittance stops');

  const small = await world.start('quittance', own, 'quittance');
  await world.untilHealthy(small);
  step('the small image in its place is healthy');
  await sell('order-2');
  step('another invoice; paid; PAID over TLS');
  await small.kill('SIGTERM');
  expect(await small.ended).toBe(0);
  for (const other of [caddy, postgres]) {
    await other.kill('SIGTERM');
    await other.ended;
  }
});

/** Prepares the services of compose.yaml as Docker would run them, in its directory and with its volumes. */
async function openWorld(folder: string, images: Images, network: Network) {
  const text = await readFile(join(ROOT, 'compose.yaml'), 'utf8');
  const { services } = parse(text, { merge: true }) as { services: Record<string, Service> };
  const launch = createRuntime(folder, network);
  const running: Running[] = [];
  onTestFinished(async () => {
    for (const each of running) await each.kill('SIGKILL').catch(() => undefined);
    await Promise.all(running.map(({ ended }) => ended));
  });
  const roots = { embedded: await images.mount('embedded'), quittance: await images.mount('quittance') };
  const says = { embedded: await images.read('embedded'), quittance: await images.read('quittance') };
  const checks = new Map<Running, readonly string[]>();
  const others = await images.mount('others');
  const { uid: postgresUid } = await userOf(others, 'postgres');

  const bind = async (volume: string, owner: number): Promise<Container['binds'][number]> => {
    const [source = '', inside = '', mode] = volume.split(':');
    if (source.startsWith('.')) return [join(ROOT, source), inside, mode === 'ro'];
    const path = join(folder, `volume-${source}`);
    await mkdir(path, { recursive: true });
    await chown(path, owner, owner);
    return [path, inside, false];
  };
  const start = async (
    name: string,
    env: Record<string, string>,
    image: keyof typeof roots = 'embedded',
  ): Promise<Running> => {
    const { environment = {}, volumes = [], command, ...service } = services[name] ?? {};
    const isOurs = service.read_only === true;
    const { entrypoint, cmd, env: ownEnv, uid: ownUid, healthcheck } = says[image];
    const uid = isOurs ? ownUid : name === 'postgres' ? postgresUid : 0;
    const own = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, fillVariables(value, env)]));
    const added = Object.fromEntries(Object.entries(env).filter(([key]) => key.startsWith('QUITTANCE_DEVNET')));
    const binds = await Promise.all(volumes.map((volume) => bind(volume, uid)));
    const container = await launch({
      ...{ name: `${name}-${image}`, root: isOurs ? roots[image] : others, uid },
      args: isOurs ? [...entrypoint, ...(command === undefined ? cmd : [command])] : (OTHERS[name] ?? []),
      env: { ...(isOurs ? ownEnv : OTHERS_ENV[name]), ...own, ...(isOurs ? added : {}) },
      isReadOnly: isOurs,
      hasNoRights: service.cap_drop?.includes('ALL') === true,
      tmpfs: service.tmpfs ?? [],
      binds:
        name === 'postgres' ? [...binds, [join(import.meta.dirname, 'start-postgres.sh'), '/start.sh', true]] : binds,
    });
    running.push(container);
    checks.set(container, isOurs ? healthcheck : (service.healthcheck?.test.slice(1) ?? []));
    return container;
  };
  return {
    start,
    /** The page's first command, which writes the variables that the file needs. */
    setUp: async () => {
      const once = await launch({
        ...{
          name: 'setup',
          root: roots.embedded,
          uid: UID,
          isReadOnly: true,
          hasNoRights: true,
          tmpfs: ['/tmp'],
          binds: [],
        },
        args: [...says.embedded.entrypoint, 'setup', '--site', SITE, '--output', '-'],
        env: says.embedded.env,
      });
      expect([await once.ended, once.output()]).toEqual([0, expect.any(String)]);
      return readEnvFile(once.output());
    },
    untilHealthy: async (container: Running) => {
      const check = checks.get(container) ?? [];
      let hasEnded = false;
      void container.ended.then(() => {
        hasEnded = true;
      });
      await expect
        .poll(
          () => {
            if (hasEnded) throw new Error(container.output());
            return container.exec(...check).then(() => 'healthy', String);
          },
          { timeout: 120_000, interval: 200 },
        )
        .toBe('healthy');
    },
  };
}

/** The default commands of other projects' images. */
const OTHERS: Record<string, string[]> = {
  postgres: ['/bin/sh', '/start.sh'],
  caddy: ['/usr/bin/caddy', 'run', '--config', '/etc/caddy/Caddyfile', '--adapter', 'caddyfile'],
};
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/15/bin';
const OTHERS_ENV: Record<string, Record<string, string>> = {
  postgres: { PATH },
  caddy: { PATH, XDG_DATA_HOME: '/data', XDG_CONFIG_HOME: '/tmp' },
};

async function userOf(root: string, name: string): Promise<{ uid: number }> {
  const users = await readFile(join(root, 'etc/passwd'), 'utf8');
  return { uid: Number(new RegExp(`^${name}:[^:]*:(\\d+):`, 'm').exec(users)?.[1]) };
}

async function readRights(container: Running) {
  const status = await readFile(`/proc/${await container.pid()}/status`, 'utf8');
  const read = (name: string, base: number) =>
    Number.parseInt(new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status)?.[1] ?? '', base);
  return {
    Uid: read('Uid', 10),
    CapEff: read('CapEff', 16),
    CapBnd: read('CapBnd', 16),
    NoNewPrivs: read('NoNewPrivs', 10),
  };
}

/** Starts a payer in the containers' network. */
function startPayer(network: Network) {
  const node = [process.execPath, '--conditions=@quittance/source', '--import', 'ts-blank-space/register'];
  const child = network.inside([...node, join(import.meta.dirname, 'payer.ts'), HOSTS.chain]);
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  return {
    tell: (task: object) => void child.stdin?.write(`${JSON.stringify(task)}\n`),
    next: async () => JSON.parse((await lines.next()).value as string),
  };
}
