import { createHash, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { formatApiKey } from '../../core/domain/api-key.ts';
import { uuidV7 } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import { createAuthenticator, type KnownKey } from './authenticate.ts';
import { createTokenBuckets } from './rate-limit.ts';

const NOW = unixMs(1_800_000_000_000);

/** An authenticator that has learned one key and never queries a database. */
function learned(more: Partial<KnownKey>) {
  const id = uuidV7(NOW, randomBytes(10));
  const apiKey = formatApiKey('mainnet', id, randomBytes(32));
  const authenticator = createAuthenticator({
    findValidKey: async () => null,
    failureBuckets: createTokenBuckets({ perSecond: 1, burst: 1 }, 10),
    now: () => NOW,
  });
  const secretSha256 = createHash('sha256').update(apiKey).digest();
  const [projectId, network, policy] = ['project', 'mainnet', 'tail'] as const;
  const rest = {
    allowedCidrs: null,
    expiresAt: null,
    scopes: null,
    maxSurchargeMicro: 10_000n,
    invoiceLifetimeMs: 1_800_000,
    returnOrigins: [],
  };
  authenticator.learn([{ id, projectId, network, policy, secretSha256, ...rest, ...more }]);
  const recognize = (ip: string) => authenticator.recognize(apiKey, { ip, network: ip });
  return { id, recognize };
}

test('a key is its owner’s only from where it may be used: who found it elsewhere takes none of its turns', () => {
  const { id, recognize } = learned({ allowedCidrs: ['10.0.0.0/8'] });
  expect(recognize('10.1.2.3')?.id).toBe(id);
  expect(recognize('198.51.100.7')).toBeNull();
});

test('a key is nobody’s once it has expired', () => {
  expect(learned({ expiresAt: unixMs(NOW + 1) }).recognize('10.1.2.3')).not.toBeNull();
  expect(learned({ expiresAt: NOW }).recognize('10.1.2.3')).toBeNull();
});

test('a key is read again after a clock that was ahead is corrected', async () => {
  let now = unixMs(NOW + 86_400_000);
  const read: string[] = [];
  const authenticator = createAuthenticator({
    findValidKey: async (id) => {
      read.push(id);
      return null;
    },
    failureBuckets: createTokenBuckets({ perSecond: 1, burst: 10 }, 10),
    now: () => now,
  });
  const apiKey = formatApiKey('mainnet', uuidV7(NOW, randomBytes(10)), randomBytes(32));
  const ask = () => authenticator.authenticate(apiKey, { ip: '10.1.2.3', network: '10.1.2.3' });
  await ask();
  await ask();
  expect(read).toHaveLength(1);
  now = NOW;
  await ask();
  expect(read).toHaveLength(2);
});
