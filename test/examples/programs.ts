import { execFile } from 'node:child_process';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { findSteadyPort } from '../support/steady-port.ts';
import { EXAMPLES, type Program } from './program.ts';

const ROOT = resolve(import.meta.dirname, '../..');

export const PROGRAMS: Program[] = [
  {
    language: 'Node',
    probe: [process.execPath, '--version'],
    prepare: async () => ({ command: [process.execPath, join(EXAMPLES, 'node/receiver.mjs')] }),
  },
  {
    language: 'Node with the SDK',
    probe: [process.execPath, '--version'],
    prepare: async (folder) => {
      await installSdk(folder);
      await copyFile(join(EXAMPLES, 'node-sdk/receiver.mjs'), join(folder, 'receiver.mjs'));
      return { command: [process.execPath, join(folder, 'receiver.mjs')] };
    },
  },
  {
    language: 'Python',
    probe: ['python3', '--version'],
    prepare: async () => ({ command: ['python3', join(EXAMPLES, 'python/receiver.py')] }),
  },
  {
    language: 'PHP',
    probe: ['php', '-r', "exit(extension_loaded('pdo_sqlite') ? 0 : 1);"],
    prepare: async (folder) => ({
      command: ['php', '-S', `127.0.0.1:${await findSteadyPort()}`, join(EXAMPLES, 'php/receiver.php')],
      env: { DATABASE_DSN: `sqlite:${join(folder, 'shop.sqlite')}`, PHP_CLI_SERVER_WORKERS: '3' },
    }),
  },
  {
    language: 'Java',
    // A runtime without the compiler can't launch a source file.
    probe: ['javac', '-J-XX:-UsePerfData', '--version'],
    prepare: async () => ({
      // Creates no monitoring file in the temporary directory, because ending by a signal would leave it there.
      command: ['java', '-XX:-UsePerfData', '-XX:TieredStopAtLevel=1', join(EXAMPLES, 'java/Receiver.java')],
    }),
  },
];

// Not part of `npm test`, because compiling Go's net/http for the first time takes half a minute of processor time.
export const GO: Program = {
  language: 'Go',
  probe: ['go', 'version'],
  prepare: async (folder) => {
    const binary = join(folder, 'receiver');
    await promisify(execFile)('go', ['build', '-o', binary, join(EXAMPLES, 'go/receiver.go')], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        // Reuses the machine's build cache if it's configured. Otherwise nothing is left behind.
        GOCACHE: process.env['GOCACHE'] ?? join(folder, 'cache'),
        HOME: folder,
        GOPATH: join(folder, 'go'),
        CGO_ENABLED: '0',
        GOPROXY: 'off',
        GOTOOLCHAIN: 'local',
      },
    });
    return { command: [binary] };
  },
};

/** Does the same as `npm install @quittance/sdk express`: installs the package with its own exports, built from its source. */
async function installSdk(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  const sdk = join(modules, '@quittance/sdk');
  await mkdir(sdk, { recursive: true });
  await build({
    entryPoints: ['index.ts', 'middleware/express.ts'].map((file) => join(ROOT, 'packages/sdk/src', file)),
    bundle: true,
    splitting: true,
    format: 'esm',
    outbase: join(ROOT, 'packages/sdk/src'),
    outdir: join(sdk, 'dist/esm'),
    logLevel: 'silent',
  });
  await copyFile(join(ROOT, 'packages/sdk/package.json'), join(sdk, 'package.json'));
  await symlink(join(ROOT, 'test/node_modules/express'), join(modules, 'express'));
}
