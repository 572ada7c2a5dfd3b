import { afterEach, onTestFinished, test, vi } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory } from './run-cli.ts';

// See golden.test.ts.

afterEach(() => {
  vi.useRealTimers();
});

test('adapters are enabled, given another rate, disabled and refused as they were', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const named: Record<string, string> = {};
  const env = {
    ...{ DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString },
    ...{ QUITTANCE_DATA_DIR: newDirectory(), QUITTANCE_MASTER_KEY: 'A'.repeat(42).concat('A=') },
  };
  const { run, both, finishAudited } = startRecording('adapter', env, named);
  const enable = (kind: string, ...args: string[]) => ['adapter', 'enable', '--kind', kind, ...args];
  const source = (url: string, ...args: string[]) =>
    enable('epay', '--rate-url', url, '--rate-path', '/cny', '--rate-min', '6.5', '--rate-max', '8', ...args);
  await run(['migrate']);
  await run(['project', 'create', '--name', 'Shop', '--network', 'devnet', '--json']);
  await both(['adapter', 'list']);
  for (const wrong of [
    enable('stripe', '--rate', '7.2'),
    enable('epay', '--rate', '7,2'),
    enable('epay', '--rate', '0'),
    enable('epay', '--rate', '7.2', '--currency', 'renminbi'),
    enable('epay', '--rate', '7.2', '--secret', 'short'),
    enable('epay'),
    enable('epay', '--rate', '7.2', '--rate-url', 'https://rates.example/'),
    enable('epay', '--rate', '7.2', '--rate-max', '8'),
    enable('epay', '--rate-url', 'https://rates.example/'),
    source('https://rates.example/', '--rate-min', '9'),
    source('https://rates.example/', '--rate-max-age', '30s'),
    source('https://rates.example/', '--rate-path', 'tether.cny'),
    source('https://rates.example/', '--rate-time-path', '/t~2'),
    source('https://10.0.0.1/?key=h0rse'),
  ])
    await run(wrong);
  const { secret } = await run([...enable('epay', '--rate', '7.2'), '--json']);
  named[secret] = '<secret>'.padEnd(secret.length, '_');
  const given = { stdin: 'the-secret-that-the-shop-has\n' };
  const { adapterId } = await run(
    [...enable('epusdt', '--rate', '0.92', '--currency', 'eur', '--secret', '-'), '--json'],
    given,
  );
  await run(enable('epusdt', '--rate', '0.9', '--currency', 'EUR'));
  await run(enable('epusdt', '--rate', '0.9'));
  await both(['adapter', 'list']);
  await run(['webhook', 'list']);
  await run(['webhook', 'update', adapterId, '--url', 'https://shop.example/']);
  await run(['webhook', 'rotate', adapterId]);
  await run(['webhook', 'test', adapterId]);
  await both(['adapter', 'disable', adapterId]);
  await run(['adapter', 'disable', 'whe_x']);
  await run(['adapter', 'list']);
  await run(enable('epusdt', '--rate', '7.2', '--secret', '-'), given);
  await run(enable('price', '--rate', '0.92'));
  const { adapterId: euros } = await run([...enable('price', '--rate', '0.92', '--currency', 'EUR'), '--json']);
  await run(enable('price', '--rate', '0.9', '--currency', 'EUR'));
  await both(['adapter', 'list']);
  await run(['webhook', 'update', euros, '--url', 'https://shop.example/']);
  await run(['webhook', 'rotate', euros]);
  await run(['adapter', 'disable', euros]);
  await finishAudited();
});
