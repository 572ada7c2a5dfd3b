import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readSourceTree } from './source-tree.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The wallets of the local network, and the code that verifies signatures. */
const MAY_SIGN = /^packages\/(?:devnet\/|tron\/src\/signature\.ts$)/;

test('nothing outside of the local network signs a transaction or builds one: there is no private key to lose', () => {
  const service = readSourceTree(ROOT)
    .map(({ path }) => path)
    .filter((path) => !MAY_SIGN.test(path));
  const signing = service.filter((name) =>
    /\bsignMessage\b|secp256k1\.sign\b/.test(readFileSync(join(ROOT, name), 'utf8')),
  );
  expect(service.length).toBeGreaterThan(300);
  expect(signing).toEqual([]);
  // Proves that the search finds signing code.
  expect(readFileSync(join(ROOT, 'packages/devnet/src/chain/block.ts'), 'utf8')).toMatch(/\bsignMessage\b/);
});
