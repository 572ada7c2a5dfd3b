import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { npmCommand } from './npm.js';

const TESTS = join(import.meta.dirname, '../test');
/** npm builds test/node_modules from these files. */
const FILES = ['package.json', 'package-lock.json', '.npmrc'];
const DRAFT = '.installing-';
/** An installation takes minutes, so a draft this old was left behind by a killed process. */
const DRAFT_LIMIT_MS = 3_600_000;
const BY_HAND = '"npm ci --prefix test"';

/** The message says what is wrong and what to do. */
class TestPackagesError extends Error {}

/**
 * Installs test/node_modules as test/package-lock.json describes it: a browser, fonts, frameworks of shops and similar packages. They are
 * most of what we ever install, and the service needs none of them. A rename puts them in place, so that a killed or parallel run doesn't
 * leave half of them.
 */
function installTestPackages() {
  if (isInstalled()) return;
  process.stderr.write(
    'Installing what only tests and checks need, into test/node_modules: once until its lock changes.\n',
  );
  const draft = join(TESTS, `${DRAFT}${process.pid}`);
  try {
    removeRemains();
    mkdirSync(draft);
    try {
      for (const name of FILES) copyFileSync(join(TESTS, name), join(draft, name));
      runNpm(draft);
      takeIn(draft);
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  } catch (error) {
    throw explain(error);
  }
}

/** Whether npm's record of the installation matches the lock file. Packages for other platforms may be present or absent. */
function isInstalled() {
  const locked = readPackages('package-lock.json');
  const installed = readPackages('node_modules/.package-lock.json');
  const isSame = (path) => locked.get(path)?.integrity === installed.get(path)?.integrity;
  const expected = [...locked].filter(
    ([path, { optional, ...only }]) => path !== '' && (optional !== true || isForHere(only)),
  );
  return [...expected.map(([path]) => path), ...installed.keys()].every(isSame);
}

/** Whether an optional package supports this platform. This doesn't check the C library that some packages also require. */
function isForHere({ os, cpu, libc }) {
  return os?.includes(process.platform) === true && cpu?.includes(process.arch) === true && libc === undefined;
}

/** Maps a path such as `node_modules/hono` to the lock file's entry for it. npm writes the lock file in node_modules last. */
function readPackages(name) {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(join(TESTS, name), 'utf8')).packages));
  } catch (error) {
    if (error.code === 'ENOENT') return new Map();
    throw error;
  }
}

function runNpm(folder) {
  const [command, ...args] = [...npmCommand(), 'ci', '--prefer-offline', '--no-audit', '--no-fund'];
  // Sends npm's output to standard error, because standard output may be someone's data.
  const { status, error } = spawnSync(command, args, { cwd: folder, stdio: ['ignore', 2, 2] });
  if (error !== undefined) throw error;
  if (status === 0) return;
  throw new TestPackagesError(
    `npm could not install what test/package-lock.json names; it says above why. Once the registry of packages can be reached, start again, or run ${BY_HAND}`,
  );
}

/** The second of two parallel runs finds the packages already in place. */
function takeIn(draft) {
  if (isInstalled()) return;
  const place = join(TESTS, 'node_modules');
  try {
    renameSync(place, join(draft, 'old'));
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  try {
    renameSync(join(draft, 'node_modules'), place);
  } catch (error) {
    if (!isInstalled()) throw error;
  }
}

function removeRemains() {
  for (const name of readdirSync(TESTS).filter((entry) => entry.startsWith(DRAFT))) {
    const path = join(TESTS, name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && Date.now() - found.mtimeMs > DRAFT_LIMIT_MS)
      rmSync(path, { recursive: true, force: true });
  }
}

function explain(error) {
  const { code, path = TESTS } = error;
  if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) return error;
  return new TestPackagesError(
    `what only tests and checks need is not installed, and uid ${process.getuid?.()} may not write ${path} (${code}): run ${BY_HAND} as the user who owns it`,
  );
}

/** Called before the tests. Tests that need none of the packages run without them; the others report what is missing. */
export function setup() {
  tell('warning');
}

// For commands that need the packages: `node build/test-packages.js && …`.
if (process.argv[1] === import.meta.filename) process.exitCode = tell('error') ? 0 : 1;

function tell(kind) {
  try {
    installTestPackages();
    return true;
  } catch (error) {
    if (!(error instanceof TestPackagesError)) throw error;
    process.stderr.write(`${kind}: ${error.message}\n`);
    return false;
  }
}
