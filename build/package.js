import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * Builds one of the packages in packages/ into a folder, by default its `dist`. The SDK has ES modules in `esm` and CommonJS in `cjs`, each
 * with its types; the others have only ES modules. `node build/package.js tron|devnet|sdk [FOLDER]`
 */
const ROOT = join(import.meta.dirname, '..');
const NAMES = ['tron', 'devnet', 'sdk'];
const [name, folder] = process.argv.slice(2);
if (!NAMES.includes(name)) throw new Error(`give the name of a package: ${NAMES.join(', ')}`);
const home = join(ROOT, 'packages', name);
const dist = resolve(folder ?? join(home, 'dist'));

rmSync(dist, { recursive: true, force: true });
if (name === 'sdk') {
  compile('esm', []);
  compile('cjs', ['--module', 'commonjs', '--moduleResolution', 'node10', '--verbatimModuleSyntax', 'false']);
  writeFileSync(join(dist, 'cjs/package.json'), '{"type":"commonjs"}\n');
} else compile('', []);

function compile(format, more) {
  const outDir = join(dist, format);
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['-p', join(home, 'tsconfig.json'), '--outDir', outDir, ...more];
  execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
  for (const file of readdirSync(outDir, { recursive: true })) {
    if (file.endsWith('.d.ts')) ageTypes(join(outDir, file));
  }
}

/** Declarations that older TypeScript can't read: `./error.ts` before 5.0, and `Uint8Array<ArrayBuffer>` before 5.7. */
function ageTypes(file) {
  const text = readFileSync(file, 'utf8').replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'");
  writeFileSync(file, text.replaceAll('Uint8Array<ArrayBuffer>', 'Uint8Array'));
}
