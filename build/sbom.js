// Writes <name>-<version>.sbom.json (CycloneDX) into the working directory, next to the output of `npm pack`. It lists every package of
// the lock file that an installation without development packages has. Needs no network; the same lock file gives the same text.
//
// npm sees only the production part of package.json and of the lock file. On the complete files, `npm sbom --omit dev` also omits
// packages that a development package needs too: with npm 11.19 these are 20 of our packages, such as pg-protocol and commander.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { npmCommand } from './npm.js';

const root = join(import.meta.dirname, '..');
const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));

const { devDependencies: _, workspaces: _w, ...manifest } = read('package.json');
const lock = read('package-lock.json');
const { '': self, ...packages } = lock.packages;
const { devDependencies: __, workspaces: __w, ...ownLock } = self;
const production = Object.entries(packages).filter(
  ([path, { dev, link }]) => !dev && !link && path.startsWith('node_modules/'),
);

const parent = mkdtempSync(join(tmpdir(), 'quittance-sbom-'));
try {
  // npm uses the folder's name as the project's name.
  const folder = join(parent, manifest.name);
  mkdirSync(folder);
  const write = (name, value) => writeFileSync(join(folder, name), JSON.stringify(value));
  write('package.json', manifest);
  write('package-lock.json', { ...lock, packages: { '': ownLock, ...Object.fromEntries(production) } });
  const sbom = JSON.parse(
    npm(folder, 'sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'),
  );
  // A number and a time that differ in every run.
  delete sbom.serialNumber;
  delete sbom.metadata.timestamp;
  const file = `${manifest.name}-${manifest.version}.sbom.json`;
  writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
  process.stdout.write(`${file}: ${sbom.components.length} packages\n`);
} finally {
  rmSync(parent, { recursive: true });
}

function npm(cwd, ...args) {
  const [file, ...first] = npmCommand();
  return execFileSync(file, [...first, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
