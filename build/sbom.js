// Writes <name>-<version>.sbom.json (CycloneDX) into the working directory, beside what `npm pack` writes: every package of
// the lock that an installation without development packages has. No network is asked, and the same lock gives the same text.
//
// npm sees the production half of package.json and of the lock alone. `npm sbom --omit dev` of all leaves out what a development
// package needs as well: with npm 11.19 20 of our packages, pg-protocol and commander among them.
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
  // npm takes the folder's name for that of the project.
  const folder = join(parent, manifest.name);
  mkdirSync(folder);
  const write = (name, value) => writeFileSync(join(folder, name), JSON.stringify(value));
  write('package.json', manifest);
  write('package-lock.json', { ...lock, packages: { '': ownLock, ...Object.fromEntries(production) } });
  const sbom = JSON.parse(
    npm(folder, 'sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'),
  );
  // A number and a time of this run.
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
