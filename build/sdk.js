import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/**
 * Builds @quittance/sdk into a folder, `sdk/dist` unless another is given: modules in `esm`, CommonJS in `cjs`, each with its types.
 * `node build/sdk.js [FOLDER]`
 */
const ROOT = join(import.meta.dirname, '..');
const dist = resolve(process.argv[2] ?? join(ROOT, 'sdk/dist'));

rmSync(dist, { recursive: true, force: true });
compile('esm', []);
compile('cjs', ['--module', 'commonjs', '--moduleResolution', 'node10', '--verbatimModuleSyntax', 'false']);
writeFileSync(join(dist, 'cjs/package.json'), '{"type":"commonjs"}\n');

function compile(name, more) {
  const outDir = join(dist, name);
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const options = ['-p', join(ROOT, 'sdk/tsconfig.json'), '--outDir', outDir, ...more];
  execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
  for (const file of readdirSync(outDir, { recursive: true })) {
    if (file.endsWith('.d.ts')) ageTypes(join(outDir, file));
  }
}

/** What TypeScript before 5.0 cannot read in declarations, `./error.ts`, and before 5.7, `Uint8Array<ArrayBuffer>`. */
function ageTypes(file) {
  const text = readFileSync(file, 'utf8').replaceAll(/(from '\.[^']*)\.ts'/g, "$1.js'");
  writeFileSync(file, text.replaceAll('Uint8Array<ArrayBuffer>', 'Uint8Array'));
}
