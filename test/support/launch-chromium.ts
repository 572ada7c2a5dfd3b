import { execFile } from 'node:child_process';
import { access, mkdir, rename, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { PATIENCE_MS } from './patience.ts';

/**
 * Starts the Chromium that npm installed. The first call for a directory unpacks it there (about 2 s). The code that created the directory
 * removes it.
 */
export async function launchChromiumIn(parent: string): Promise<Browser> {
  const directory = join(parent, 'chromium');
  if (!(await exists(directory))) await unpackOnce(directory);
  const libraries = join(directory, 'al2023', 'lib');
  const options = {
    executablePath: join(directory, 'chromium'),
    args: ARGS,
    env: {
      PATH: '/usr/local/bin:/usr/bin:/bin',
      // Everything that Chromium writes besides its profile is deleted with the run.
      HOME: parent,
      TMPDIR: parent,
      FONTCONFIG_PATH: join(directory, 'fonts'),
      ...((await exists(libraries)) ? { LD_LIBRARY_PATH: libraries } : {}),
    },
  };
  // Chromium itself may crash while starting, as it once did in libc. No page is open at that point.
  return chromium.launch(options).catch((error: Error) => {
    if (!error.message.includes('signal=SIGSEGV')) throw error;
    process.stderr.write(`Chromium crashed while it started, and is started again: ${error.message.slice(-300)}\n`);
    return chromium.launch(options);
  });
}

/**
 * Without a sandbox, because root and most containers can't have one and only our own pages are opened; and without its own network
 * services.
 */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--disable-quic',
  '--disable-default-apps',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-pings',
  '--font-render-hinting=none',
];

/** The first worker that needs it unpacks it, and the others wait for the finished directory to appear. */
async function unpackOnce(directory: string): Promise<void> {
  const draft = `${directory}.draft`;
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (!(await exists(directory))) {
    if (performance.now() > deadlineMs)
      throw new Error(`Chromium was not unpacked to ${directory} within ${PATIENCE_MS} ms`);
    if (!(await claim(draft))) {
      await delay(50);
      continue;
    }
    // Another worker may have finished its draft just before this one was made.
    if (await exists(directory)) {
      await rmdir(draft);
      break;
    }
    const script = fileURLToPath(new URL('./chromium-unpack.ts', import.meta.url));
    // The package unpacks into os.tmpdir(), so it runs in a process whose temporary directory is the draft.
    await promisify(execFile)(
      process.execPath,
      ['--conditions=@quittance/source', '--import', 'ts-blank-space/register', script, directory],
      {
        env: { ...process.env, TMPDIR: draft },
      },
    );
    await rename(draft, directory);
  }
}

async function claim(draft: string): Promise<boolean> {
  return mkdir(draft).then(
    () => true,
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
