import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** Maps each source folder to its folder below dist/. */
const SOURCES = [
  { folder: 'src', to: '' },
  ...['tron', 'devnet'].map((name) => ({ folder: `packages/${name}/src`, to: `packages/${name}` })),
];
const DIST = join(ROOT, 'dist');
/** A line for each source: a digest of the source and of its build, and the source's path. */
const STAMP = 'built-from';
const DRAFT = '.draft';
/** A draft becomes its file within a millisecond, so a draft this old was left behind by a killed process. */
const DRAFT_LIMIT_MS = 60_000;
/**
 * If sources change during the build, they are built again. Someone who keeps changing them for longer than this isn't about to run them.
 */
const MAX_ROUNDS = 5;
const MAX_PROBLEMS = 10;

/** The message says what is wrong and what to do. */
export class BuildError extends Error {}

/**
 * Builds src/ and packages/ into dist/: builds every source that changed, and deletes what no longer has a source. Compares the content of
 * both sides, never times or sizes, so it notices a build that was killed, overtaken by another one, or edited. Several processes may do
 * this at once.
 */
export async function buildDist() {
  try {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { sources, stamp, changed, isWhole } = look();
      if (isWhole) return;
      const built = await build(changed, sources);
      for (const [name, text] of built) write(outputOf(name), text);
      removeOthers(new Set([STAMP, ...[...sources.keys()].map(outputOf)]));
      // Written last, so that an interrupted build isn't trusted.
      const lines = [...sources].map(([name, source]) => {
        return `${built.has(name) ? digestOf(source, built.get(name)) : stamp.get(name)} ${name}\n`;
      });
      write(STAMP, lines.join(''));
    }
  } catch (error) {
    throw explain(error);
  }
  throw new BuildError('the sources change while they are built: start again when they are as they should be');
}

/** Compares each source and its build with the stamp. */
function look() {
  const sources = readSources();
  const lines = (readBuilt(STAMP) ?? '').matchAll(/^(\S+) (.+)$/gm);
  const stamp = new Map([...lines].map(([, digest, name]) => [name, digest]));
  const isFresh = ([name, source]) => stamp.get(name) === digestOf(source, readBuilt(outputOf(name)));
  const changed = [...sources].filter((entry) => !isFresh(entry)).map(([name]) => name);
  return { sources, stamp, changed, isWhole: changed.length === 0 && stamp.size === sources.size };
}

/** Maps the path of each source, such as `src/cli/main.ts`, to its text. */
function readSources() {
  const paths = SOURCES.flatMap(({ folder }) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /(?<!\.test)\.ts$|\.json$/.test(entry.name))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  );
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
}

/** Returns the text of a file in dist/, or `undefined` if there is none. */
function readBuilt(name) {
  try {
    return readFileSync(join(DIST, name), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Turns `packages/tron/src/hex.ts` into `packages/tron/hex.js` below dist/, and `src/cli/main.ts` into `cli/main.js`. */
function outputOf(path) {
  const { folder, to } = SOURCES.find(({ folder }) => path.startsWith(`${folder}/`));
  return posix.join(to, path.slice(folder.length + 1)).replace(/\.ts$/, '.js');
}

/** Returns the path by which a file of dist/ imports `@quittance/tron/hex`: the package of Quittance contains its own packages. */
function pathTo(specifier, from) {
  const [, name, path = 'index'] = /^@quittance\/(tron|devnet)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (name === undefined) return specifier;
  const led = posix.relative(posix.dirname(outputOf(from)), `packages/${name}/${path}.js`);
  return led.startsWith('.') ? led : `./${led}`;
}

/** Resolves only within this checkout. Node.js also searches every parent folder, and anyone may put a package above a folder in /tmp. */
const BUILDERS = ['ts-blank-space', 'typescript'];
const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
/** The files that build: this one and its neighbours, and the packages that they use. */
const BUILDER = [
  ...['build-dist.js', 'erase-types.js'].map((name) => readFileSync(join(ROOT, 'build', name), 'utf8')),
  ...BUILDERS.map((name) => devDependencies[name]),
].join('\0');

function digestOf(source, output) {
  return createHash('sha256').update(BUILDER).update(`\0${source}\0${output}`).digest('base64url');
}

/** Maps the path of each source to its JavaScript, or to its unchanged JSON. */
async function build(names, sources) {
  if (names.length === 0) return new Map();
  if (!BUILDERS.every((name) => existsSync(join(ROOT, 'node_modules', name)))) throw notInstalled();
  const { eraseTypes } = await import('./erase-types.js');
  const results = names.map((name) => {
    const compile = name.endsWith('.json') ? checkJson : eraseTypes;
    return [name, compile(name, sources.get(name), (specifier) => pathTo(specifier, name))];
  });
  const problems = results.flatMap(([, result]) => result.problems);
  if (problems.length === 0) return new Map(results.map(([name, { text }]) => [name, text]));
  const shown = problems.slice(0, MAX_PROBLEMS).join('\n');
  throw new BuildError(`the sources do not compile, and an older build is not run in their place:\n${shown}`);
}

/** The start would fail too, but without naming the file. */
function checkJson(path, text) {
  try {
    JSON.parse(text);
    return { text, problems: [] };
  } catch (error) {
    return { text: '', problems: [`${path}: ${error.message}`] };
  }
}

/** Replaces the file in one step, because another process may be reading it. */
function write(name, text) {
  const path = join(DIST, name);
  const draft = `${path}.${process.pid}${DRAFT}`;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(draft, text);
  renameSync(draft, path);
}

function removeOthers(expected) {
  for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory() || expected.has(relative(DIST, path)) || isInUse(path)) continue;
    rmSync(path, { force: true });
  }
}

function isInUse(draft) {
  if (!draft.endsWith(DRAFT)) return false;
  const found = statSync(draft, { throwIfNoEntry: false });
  return found !== undefined && Date.now() - found.mtimeMs < DRAFT_LIMIT_MS;
}

const STATE = 'dist/ is not what the sources in src/ and packages/ build to';

function notInstalled() {
  const fix = 'run "npm ci --include=dev", then "npm run build"; "npm prune --omit=dev" may remove them again';
  return new BuildError(`${STATE}, and the packages that build are not installed: ${fix}`);
}

function explain(error) {
  const { code, path = DIST } = error;
  if (!['EACCES', 'EPERM', 'EROFS'].includes(code)) return error;
  const fix = 'run "npm run build" as the user who owns it';
  return new BuildError(`${STATE}, and uid ${process.getuid?.()} may not read or write ${path} (${code}): ${fix}`);
}
