import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';

const ROOT = join(import.meta.dirname, '../..');
/** Hundreds of packages of a shop, and what npm prints of them. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

export type Installed =
  | { kind: 'installed'; folder: string; remove(): Promise<void> }
  | { kind: 'missing'; reason: string };

/** Installs a plugin and its shop, as its lock says, beside the SDK as it would be published, in a folder for temporary files. */
export async function installPlugin(name: string): Promise<Installed> {
  const parent = await mkdtemp(join(tmpdir(), `plugin-${name}-`));
  const folder = join(parent, 'plugins', name);
  const remove = () => rm(parent, { recursive: true, force: true });
  const [program, ...first] = npmCommand();
  const run = (cwd: string, command: string, args: string[]) =>
    promisify(execFile)(command, args, { cwd, maxBuffer: MAX_OUTPUT_BYTES });
  try {
    await run(parent, process.execPath, [join(ROOT, 'build/sdk.js')]);
    const { stdout } = await run(parent, program, [
      ...first,
      'pack',
      join(ROOT, 'sdk'),
      '--silent',
      '--ignore-scripts',
    ]);
    await run(parent, 'tar', ['xzf', stdout.trim()]);
    await cp(join(parent, 'package'), join(parent, 'sdk'), { recursive: true });
    await mkdir(folder, { recursive: true });
    for (const file of ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json', 'src'])
      await cp(join(ROOT, 'plugins', name, file), join(folder, file), { recursive: true });
    const failed = await run(folder, program, [
      ...first,
      'ci',
      '--ignore-scripts',
      '--prefer-offline',
      '--silent',
    ]).then(
      () => null,
      (error: Error) => error.message,
    );
    if (failed !== null) {
      await remove();
      return { kind: 'missing', reason: `npm could not install the shop: ${failed.slice(0, 300)}` };
    }
    await run(folder, program, [...first, 'run', '--silent', 'build']);
    return { kind: 'installed', folder, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
