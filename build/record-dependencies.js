// Updates test/rules/production-packages.json from the lock file. For each package of an installation without development packages,
// it records the licence, whether the package runs an install script, when it was published, and when we added it. Existing packages
// keep their line; the script asks the registry only about new ones. The test next to the file checks it.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npmCommand } from './npm.js';

const root = join(import.meta.dirname, '..');
const file = join(root, 'test/rules/production-packages.json');
const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
const known = JSON.parse(readFileSync(file, 'utf8'));
const today = new Date().toISOString().slice(0, 10);

const lines = {};
for (const [path, { version, license, hasInstallScript, dev, link }] of Object.entries(packages)) {
  // Our own packages are links.
  if (!path.startsWith('node_modules/') || link === true || dev === true) continue;
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  // Line format: MIT, installs by a script, published 2026-06-06, taken 2026-06-20: the reason, if those days are less than a week apart.
  const [dates = `published ${askDate(name, version)}, taken ${today}`] =
    /(published [\d-]+, )?taken .*/.exec(known[`${name}@${version}`] ?? '') ?? [];
  lines[`${name}@${version}`] = `${license}, ${hasInstallScript ? 'installs by a script, ' : ''}${dates}`;
}
const sorted = Object.fromEntries(Object.entries(lines).sort(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(sorted, null, 2)}\n`);
process.stdout.write(`${Object.keys(sorted).length} packages\n`);

/** Returns the day on which the package was published, according to the registry: `2026-06-06`. */
function askDate(name, version) {
  const [command, ...first] = npmCommand();
  const times = JSON.parse(execFileSync(command, [...first, 'view', name, 'time', '--json'], { encoding: 'utf8' }));
  const time = times[version];
  if (typeof time !== 'string') throw new Error(`the registry does not say when ${name}@${version} was published`);
  return time.slice(0, 10);
}
