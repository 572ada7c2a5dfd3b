import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { encodeId } from '../../core/domain/ids.ts';
import { microUsdt } from '../../core/domain/money.ts';
import { unixMs } from '../../core/domain/time.ts';
import { createLogger } from '../../core/runtime/log.ts';
import { createMetrics } from '../../core/runtime/metrics.ts';
import type { Database } from '../../core/store/db/database.ts';
import { createAmountRefusals } from './amount-refusals.ts';

test('every refusal is counted; the log hears once a minute of each project, and so does the alarm', async () => {
  const lines: { msg: string; project: string; amount: string }[] = [];
  const log = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const metrics = createMetrics();
  const raised: unknown[] = [];
  const noted: unknown[] = [];
  let isDown = false;
  const run = async ({ name }: { name: string }, parameters: unknown[]) => {
    if (isDown) throw new Error('the database is away');
    if (name === 'account-key-list') return [];
    if (name === 'refused-amount-upsert') return [noted.push(parameters[1])];
    return name === 'alarm-raise' ? [raised.push(parameters[3])] : [];
  };
  const db = { run } as unknown as Database;
  let nowMs = Date.now();
  const onRefused = createAmountRefusals({ db, log, metrics, now: () => unixMs(nowMs) });
  const refuse = (projectId: string) =>
    onRefused({ projectId, network: 'nile', requestedMicro: microUsdt(25_000_000n) });
  const [first, second] = [randomUUID(), randomUUID()];

  for (let i = 0; i < 3; i++) await refuse(first);
  await refuse(second);
  const [one, other] = [encodeId('prj', first), encodeId('prj', second)];
  expect(lines.map(({ project }) => project)).toEqual([one, other]);
  expect(lines[0]).toMatchObject({ level: 'warn', network: 'nile', amount: '25.000000' });
  expect(lines[0]?.msg).toContain(`quittance address add --project ${one}`);

  nowMs += 59_999;
  await refuse(first);
  expect(lines).toHaveLength(2);
  nowMs += 1;
  await refuse(first);
  expect(lines).toHaveLength(3);
  expect(raised).toEqual([one, other, one]);
  expect(noted).toEqual([25_000_000n, 25_000_000n, 25_000_000n]);
  const { values } = await metrics.amountUnavailable.get();
  expect(values.map(({ value, labels }) => [labels['project'], value])).toEqual([
    [one, 5],
    [other, 1],
  ]);

  // A failure to raise the alarm doesn't fail the request. The next refusal tries again.
  nowMs += 60_000;
  isDown = true;
  await refuse(first);
  expect(lines.at(-1)?.msg).toContain('could not raise the alarm');
  isDown = false;
  await refuse(first);
  expect(raised).toEqual([one, other, one, one]);
});
