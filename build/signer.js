import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Builds the signer of address manifests as one file without dependencies, by default `dist/manifest-sign.mjs`, and prints its SHA-256.
 * `node build/signer.js [FILE]`
 */
const ROOT = join(import.meta.dirname, '..');
const file = resolve(process.argv[2] ?? join(ROOT, 'dist/manifest-sign.mjs'));

const bundle = await rolldown({
  input: join(ROOT, 'src/cli/manifest/sign-alone.ts'),
  platform: 'node',
  cwd: ROOT,
  resolve: { conditionNames: ['@quittance/source', 'import', 'node', 'default'] },
});
await bundle.write({ file, format: 'esm', codeSplitting: false, comments: { legal: true } });
await bundle.close();
console.log(`${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${file}`);
