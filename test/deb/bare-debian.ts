import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');
const MAX_OUTPUT_BYTES = 50_000_000;

export async function run(file: string, args: readonly string[], cwd?: string): Promise<string> {
  const options = { maxBuffer: MAX_OUTPUT_BYTES, ...(cwd === undefined ? {} : { cwd }) };
  const { stdout, stderr } = await execute(file, [...args], options);
  return stdout + stderr;
}

/** Returns a sentence about missing root rights or programs, which are given with their packages; `null` if nothing is missing. */
export async function missingProgram(programs: Readonly<Record<string, string>>): Promise<string | null> {
  if (process.getuid?.() !== 0) return 'needs root, to install a Debian in a folder';
  for (const [program, name] of Object.entries(programs)) {
    const isThere = await run('sh', ['-c', `command -v ${program}`]).catch(() => null);
    if (isThere === null) return `needs ${program}: apt-get install ${name}`;
  }
  return null;
}

/** Builds the package into an empty folder, and returns its name. */
export async function buildPackage(folder: string): Promise<string> {
  await run(process.execPath, [join(ROOT, 'build/deb.js')], folder);
  const [name = ''] = await readdir(folder);
  return name;
}

export type BareDebian = {
  path: string;
  /** Copies a file into its folder /root. */
  put(file: string): Promise<void>;
  /** Runs a command in it as root, with /proc and /dev as in a real system. Returns the output. */
  inside(...command: string[]): Promise<string>;
  remove(): Promise<void>;
};

/** The mounts disappear when the command ends. */
const MOUNTED = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"';
export const ENVIRONMENT = ['-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL=C', 'DEBIAN_FRONTEND=noninteractive'];

/** Installs Debian 12 with the dependencies of dpkg and apt and the named packages, and nothing else: no Node.js, no systemd. */
export async function installBareDebian(...packages: string[]): Promise<BareDebian> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-debian-'));
  const path = join(folder, 'root');
  await run('mmdebstrap', ['--variant=minbase', ...packages.map((name) => `--include=${name}`), 'bookworm', path]);
  return {
    path,
    put: (file) => copyFile(file, join(path, 'root', basename(file))),
    inside: (...command) =>
      run('unshare', [
        '--mount',
        '--pid',
        '--fork',
        '--kill-child',
        'sh',
        '-c',
        MOUNTED,
        path,
        'env',
        ...ENVIRONMENT,
        ...command,
      ]),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
