import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '../../src');
/** The wallets of the local network, and the code that verifies signatures. */
const MAY_SIGN = /^(?:devnet\/|tron\/signature\.ts$)/;

test('nothing outside of the local network signs a transaction or builds one: there is no private key to lose', () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const service = files.filter((name) => !MAY_SIGN.test(name) && !name.endsWith('.test.ts'));
  const signing = service.filter((name) =>
    /\bsignMessage\b|secp256k1\.sign\b/.test(readFileSync(join(SOURCE, name), 'utf8')),
  );
  expect(service.length).toBeGreaterThan(300);
  expect(signing).toEqual([]);
  // Proves that the search finds signing code.
  expect(readFileSync(join(SOURCE, 'devnet/chain/block.ts'), 'utf8')).toMatch(/\bsignMessage\b/);
});
