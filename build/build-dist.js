import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** Where sources lie, and where below dist/ their builds do. */
const SOURCES = [
  { folder: 'src', to: '' },
  ...['tron', 'devnet'].map((name) => ({ folder: `packages/${name}/src`, to: `packages/${name}` })),
];
const DIST = join(ROOT, 'dist');
/** A line for each source: the digest of what it is and what it became, and its path. */
const STAMP = 'built-from';
const DRAFT = '.draft';
/** A draft becomes its file within a millisecond; one this old was left by a process that was killed. */
const DRAFT_LIMIT_MS = 60_000;
/** Sources that change while they are built are built again. Who changes them for longer does not want to run them. */
const MAX_ROUNDS = 5;
const MAX_PROBLEMS = 10;

/** The message says what is wrong and what to do. */
export class BuildError extends Error {}

/**
 * Makes dist/ what src/ and packages/ build to: what changed is built, what is gone goes. Only content is believed, of both sides, and neither times nor
 * sizes: a build that was killed, overtaken by another, or edited does not pass. Several processes may do this at once.
 */
export async function buildDist() {
  try {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { sources, stamp, changed, isWhole } = look();
      if (isWhole) return;
      const built = await build(changed, sources);
      for (const [name, text] of built) write(outputOf(name), text);
      removeOthers(new Set([STAMP, ...[...sources.keys()].map(outputOf)]));
      // The last, so that what was killed before it is not believed.
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

/** Compares each source, and what it became, with the stamp. */
function look() {
  const sources = readSources();
  const lines = (readBuilt(STAMP) ?? '').matchAll(/^(\S+) (.+)$/gm);
  const stamp = new Map([...lines].map(([, digest, name]) => [name, digest]));
  const isFresh = ([name, source]) => stamp.get(name) === digestOf(source, readBuilt(outputOf(name)));
  const changed = [...sources].filter((entry) => !isFresh(entry)).map(([name]) => name);
  return { sources, stamp, changed, isWhole: changed.length === 0 && stamp.size === sources.size };
}

/** From the path of the source, such as `src/cli/main.ts`, to the text. */
function readSources() {
  const paths = SOURCES.flatMap(({ folder }) =>
    readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /(?<!\.test)\.ts$|\.json$/.test(entry.name))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  );
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]));
}

/** The text of a file of dist/, `undefined` if there is none. */
function readBuilt(name) {
  try {
    return readFileSync(join(DIST, name), 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** `packages/tron/src/hex.ts` becomes `packages/tron/hex.js` below dist/, and `src/cli/main.ts` becomes `cli/main.js`. */
function outputOf(path) {
  const { folder, to } = SOURCES.find(({ folder }) => path.startsWith(`${folder}/`));
  return posix.join(to, path.slice(folder.length + 1)).replace(/\.ts$/, '.js');
}

/** What `@quittance/tron/hex` is called by a file of dist/: a package of Quittance has its packages in it. */
function pathTo(specifier, from) {
  const [, name, path = 'index'] = /^@quittance\/(tron|devnet)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (name === undefined) return specifier;
  const led = posix.relative(posix.dirname(outputOf(from)), `packages/${name}/${path}.js`);
  return led.startsWith('.') ? led : `./${led}`;
}

/** Of this checkout alone: Node looks for a package in each folder above as well, and above one in /tmp anybody may put it. */
const BUILDERS = ['ts-blank-space', 'typescript'];
const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
/** What builds: these files, and the packages that they use. */
const BUILDER = [
  ...['build-dist.js', 'erase-types.js'].map((name) => readFileSync(join(ROOT, 'build', name), 'utf8')),
  ...BUILDERS.map((name) => devDependencies[name]),
].join('\0');

function digestOf(source, output) {
  return createHash('sha256').update(BUILDER).update(`\0${source}\0${output}`).digest('base64url');
}

/** From the path of the source to the JavaScript, or to the JSON as it is. */
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

/** The start would fail on it as well, but without the name of the file. */
function checkJson(path, text) {
  try {
    JSON.parse(text);
    return { text, problems: [] };
  } catch (error) {
    return { text: '', problems: [`${path}: ${error.message}`] };
  }
}

/** In one step, because another process may be reading it. */
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
