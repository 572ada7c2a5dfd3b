import { cp, mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';
import { run } from '../deb/bare-debian.ts';
import { readEnvFile } from '../support/compose.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** The base images if no image registry is available: a Debian built from its packages, and the Node.js from the Debian package. */
const DEBIAN =
  'FROM scratch\nADD debian.tar /\nENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n';
const NODE = `FROM localhost/debian
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
COPY trusted.pem /usr/local/share/trusted.pem
ENV NODE_EXTRA_CA_CERTS=/usr/local/share/trusted.pem
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
`;
/** Replaces the images postgres and caddy, which are only in a registry. */
const OTHERS = 'FROM scratch\nADD others.tar /\n';

type ImageConfig = {
  entrypoint: string[];
  cmd: string[];
  healthcheck: string[];
  env: Record<string, string>;
  uid: number;
};

export type Images = {
  /** Mounts an image writable. */
  mount(image: string): Promise<string>;
  sizeMb(image: string): Promise<number>;
  /** Returns the image's run configuration. */
  read(image: string): Promise<ImageConfig>;
  remove(): Promise<void>;
};

/** Builds each target of the Dockerfile, and an image `others` with PostgreSQL and Caddy, in a separate store below `folder`. */
export async function buildImages(folder: string, step: (what: string) => void): Promise<Images> {
  const store = ['--root', join(folder, 'store'), '--runroot', join(folder, 'run')];
  const buildah = (...args: string[]) => run('buildah', [...store, ...args]);
  const build = (name: string, ...args: string[]) =>
    buildah('bud', '--isolation', 'chroot', '--format', 'docker', '--quiet', '--tag', `localhost/${name}`, ...args);
  const context = join(folder, 'context');
  await mkdir(context);
  const put = async (name: string, dockerfile: string) => {
    await writeFile(join(context, `${name}.docker`), dockerfile);
    await build(name, '--file', join(context, `${name}.docker`), context);
  };

  const debian = (tar: string, packages: string) =>
    run('mmdebstrap', ['--variant=minbase', `--include=${packages}`, 'bookworm', join(context, tar)]);
  await debian('debian.tar', 'ca-certificates');
  await put('debian', DEBIAN);
  await debian('others.tar', 'ca-certificates,caddy,postgresql-15');
  await put('others', OTHERS);
  await addNode(context);
  await put('node', NODE);
  step('a Debian of its packages, and Node.js in it, for want of a registry of images');

  const tracked = join(folder, 'clone');
  await run('git', ['clone', '--quiet', '--depth', '1', `file://${ROOT}`, tracked]);
  for (const target of ['quittance', 'embedded']) {
    const images = ['--build-arg', 'NODE_IMAGE=localhost/node', '--build-arg', 'DEBIAN_IMAGE=localhost/debian'];
    await build(target, ...images, '--target', target, tracked);
    step(`the image ${target}`);
  }
  const containers: string[] = [];
  return {
    mount: async (image) => {
      const container = (await buildah('from', `localhost/${image}`)).trim();
      containers.push(container);
      return (await buildah('mount', container)).trim();
    },
    sizeMb: async (image) => {
      const [{ size } = { size: '' }] = JSON.parse(await buildah('images', '--json', `localhost/${image}`)) as {
        size: string;
      }[];
      return Number(/^([\d.]+) MB$/.exec(size)?.[1]);
    },
    read: async (image) => {
      const inspected = await buildah('inspect', '--type', 'image', `localhost/${image}`);
      const { Entrypoint, Cmd, Healthcheck, Env, User } = JSON.parse(inspected).Docker.config;
      return {
        ...{ entrypoint: Entrypoint, cmd: Cmd, healthcheck: Healthcheck.Test.slice(1) },
        env: readEnvFile((Env as string[]).join('\n')),
        uid: Number.parseInt(User, 10),
      };
    },
    remove: async () => {
      for (const container of containers) await buildah('umount', container);
      await buildah('rm', '--all');
    },
  };
}

async function addNode(context: string): Promise<void> {
  const folder = join(context, 'node-package');
  await cp(join(ROOT, 'deploy/debian/node'), folder, { recursive: true });
  const [file, ...first] = npmCommand();
  await run(file, [...first, 'ci', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
  await cp(join(folder, 'node_modules', `node-linux-${process.arch}`, 'bin/node'), join(context, 'node'));
  const npm = await run('sh', ['-c', 'command -v npm']);
  await cp(dirname(dirname(await realpath(npm.trim()))), join(context, 'npm'), { recursive: true });
  // A machine may reach the registry through its own proxy. Images made elsewhere add nothing here.
  const trusted = process.env['NODE_EXTRA_CA_CERTS'];
  if (trusted === undefined) await writeFile(join(context, 'trusted.pem'), '');
  else await cp(trusted, join(context, 'trusted.pem'), { dereference: true });
}
