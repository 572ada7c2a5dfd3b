import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { printResumed } from '../../src/cli/chain/chain.ts';
import { unixMs } from '../../src/domain/time.ts';
import { type AlarmKind, raiseAlarm, resolveAlarms } from '../../src/store/chain/alarms.ts';
import { insertCursor, setHalt } from '../../src/store/chain/cursor.ts';
import { acquireLease, releaseLease, watcherLease } from '../../src/store/chain/leases.ts';
import { saveChainStatus } from '../../src/store/chain/status.ts';
import { readyz } from '../support/fault-flow.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { recordTerminal } from '../support/terminal.ts';

// A process that only serves the API: what the chain is like is what another one has written.
let service: TestService;
beforeEach(async () => {
  service = await startTestService({ config: { roles: ['api'] } });
});
afterEach(() => service.stop());

const raise = (kind: AlarmKind) =>
  raiseAlarm(service.db, 'devnet', { id: randomUUID(), kind, subject: '', detail: 'http://node.example is down' });

async function examine(ageMs: number): Promise<void> {
  const time = unixMs(service.clock.now() - ageMs);
  await insertCursor(service.db, 'devnet', { number: 7, id: '07'.repeat(32), time }, null);
}

/** Another process follows the chain, and wrote just now. */
async function lead() {
  await saveChainStatus(service.db, 'devnet', unixMs(service.clock.now()), {
    ...{ blind: null, headNumber: 7, ownSolidNumber: 7, nodeSolidNumber: 9007, processedNumber: 7, nodes: [] },
    ...{ catchUp: { blocksPerSecond: 90, secondsLeft: 100 }, requestsPerBlock: null },
  });
  return acquireLease(service.db, watcherLease('devnet'), 'another', 60_000);
}

test('a network of which nothing was examined is blind, and its alarms are told', async () => {
  expect(await readyz(service)).toEqual({ blind: true, reason: 'no node has answered yet', alarms: [] });
  await raise('blind');
  expect(await readyz(service)).toMatchObject({ blind: true, alarms: ['blind'] });
});

test('an alarm that any process raised makes it blind, however fresh the newest block is, until the alarm is over', async () => {
  await examine(1000);
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
  await raise('blind');
  const reported = await readyz(service);
  expect(reported).toMatchObject({ blind: true, alarms: ['blind'] });
  expect(reported.reason).toBe('no node shows the chain: run quittance chain status');
  await resolveAlarms(service.db, 'devnet', 'blind');
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
});

test('old blocks of a watcher that catches up are no blindness, and those of one that stopped or hangs are', async () => {
  service.clock.freeze();
  await examine(600_000);
  const unwatched = { blind: true, reason: 'the newest examined block is 600 s old, and no watcher works on it' };
  expect(await readyz(service)).toMatchObject(unwatched);
  const lease = await lead();
  expect(await readyz(service)).toMatchObject({ blind: false, catchUp: { secondsLeft: 100 }, alarms: [] });
  service.clock.advance(31_000);
  const silent = await readyz(service);
  expect(silent).toMatchObject({ blind: true, reason: expect.stringContaining('and no watcher works on it') });
  expect(silent).not.toHaveProperty('catchUp');
  service.clock.advance(-31_000);
  if (lease !== null) await releaseLease(service.db, lease);
  expect(await readyz(service)).toMatchObject(unwatched);
});

test('a halt is blind with its alarm, and neither is left when an operator resumes, though no watcher runs', async () => {
  await examine(1000);
  await service.db.transaction(async (tx) => {
    await setHalt(tx, 'devnet', 'two nodes contradict');
    await raiseAlarm(tx, 'devnet', { id: randomUUID(), kind: 'halted', subject: '7', detail: 'the watcher stopped' });
  });
  expect(await readyz(service)).toMatchObject({ blind: true, alarms: ['halted'] });
  const env = { DATABASE_URL: service.connectionString, QUITTANCE_DEVNET_NODES: service.devnet.url };
  const usdt = { QUITTANCE_DEVNET_USDT: service.devnet.usdtContract };
  await printResumed(recordTerminal({ env: { ...env, ...usdt } }), { yes: true });
  expect(await readyz(service)).toMatchObject({ blind: false, alarms: [] });
});
