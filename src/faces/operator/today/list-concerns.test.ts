import { expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';
import { type Actor, commandActor } from '../actor.ts';
import type { ListedEndpointView } from '../subjects/webhooks.ts';
import { listConcerns } from './show-today.ts';

const NOW = unixMs(Date.UTC(2026, 8, 20, 12));
const DAY_MS = 86_400_000;
const AT = '2026-09-20T11:00:00.000Z';
const PROJECT = 'prj_01h455vb4pex5vsknk084sn02q';

const alarm = (kind: string, subject: string) => {
  return { kind, subject, detail: `about ${subject}`, raisedAt: AT, seenAt: AT, seenCount: 1 };
};
const endpoint = (status: ListedEndpointView['status'], endpointId: string) =>
  ({
    ...{ endpointId, status, url: 'https://shop.example/hook', undelivered: 3, isUndeliveredMore: false },
    failingSince: AT,
    lastAttempt: { error: 'HTTP 500', status: 500, latencyMs: 4, attemptedAt: AT, webPage: null },
  }) as ListedEndpointView;

const calm = {
  actor: commandActor('test'),
  view: { projectId: PROJECT, supportContact: 'help@shop.example' },
  alarms: [],
  endpoints: [],
  backupAt: NOW,
  unsigned: 0,
  wasPaid: true,
  now: NOW,
  open: { count: 0, amountMicro: 0n, oldestAt: null },
};

const codes = (facts: Partial<Parameters<typeof listConcerns>[0]>) =>
  listConcerns({ ...calm, ...facts }).map(({ rank, code }) => `${rank} ${code}`);

test('where nothing is wrong, nothing is listed', () => {
  expect(codes({})).toEqual([]);
  expect(codes({ endpoints: [endpoint('active', 'whe_1'), endpoint('disabled', 'whe_2')] })).toEqual([]);
});

test('an active receiver in whose place a web page answers is a concern, with the words of the page', () => {
  const lastAttempt = { error: null, status: 200, latencyMs: 4, attemptedAt: AT, webPage: 'Log in' };
  const [concern, ...others] = listConcerns({ ...calm, endpoints: [{ ...endpoint('active', 'whe_1'), lastAttempt }] });
  expect([concern?.code, concern?.text, others]).toEqual(['receiver-page', expect.stringContaining('“Log in”'), []]);
});

test('the worst comes first: what threatens money, what waits for a person, what has days', () => {
  const listed = codes({
    alarms: [alarm('capacity-low', PROJECT), alarm('halted', '')],
    endpoints: [endpoint('failing', 'whe_1'), endpoint('paused', 'whe_2')],
    open: { count: 2, amountMicro: 5_000_000n, oldestAt: unixMs(NOW - DAY_MS) },
    backupAt: unixMs(NOW - 8 * DAY_MS),
  });
  expect(listed).toEqual([
    ...['1 halted', '2 unmatched', '2 capacity-low', '2 receiver-failing', '2 receiver-failing', '3 backup-old'],
  ]);
});

test('an alarm says what to do, and whether a person closes it', () => {
  const said = (kind: string) => String(listConcerns({ ...calm, alarms: [alarm(kind, '')] })[0]?.next);
  expect(said('contract-event')).toBe(
    `Read Tether's announcement. See docs/reference/alarms.md#contract-event. After reading the alarm, close it with "chain acknowledge".`,
  );
  expect(said('capacity-low')).toBe('Add addresses: "address add". See docs/reference/alarms.md#capacity-low.');
  expect(said('of-a-newer-release')).toBe('Upgrade this process. See docs/reference/alarms.md#of-a-newer-release.');
});

test('who may see some projects only hears of networks and of those projects, and of no address, invoice or endpoint of another', () => {
  const alarms = [
    ...[alarm('halted', ''), alarm('capacity-low', PROJECT), alarm('capacity-low', 'prj_other')],
    ...[alarm('webhook-disabled', 'whe_1'), alarm('webhook-disabled', 'whe_other'), alarm('balance-differs', 'T1')],
  ];
  const endpoints = [endpoint('active', 'whe_1')];
  expect(codes({ alarms, endpoints })).toHaveLength(6);
  const guest: Actor = { ...commandActor('guest'), projects: ['01a2090d-34ce-74bb-8614-90b6a574cc8b'] };
  expect(codes({ alarms, endpoints, actor: guest })).toEqual(['1 halted', '2 capacity-low', '2 webhook-disabled']);
});

test('a project without a support contact is named last', () => {
  const view = { projectId: PROJECT, supportContact: null };
  expect(codes({ view, backupAt: unixMs(NOW - 8 * DAY_MS) })).toEqual(['3 no-support-contact', '3 backup-old']);
});

test('addresses of real money that nobody signed are a concern, unless an alarm names them to who asks', () => {
  expect(codes({ unsigned: 2 })).toEqual(['2 attestation-missing']);
  const said = (unsigned: number) => listConcerns({ ...calm, unsigned })[0]?.text;
  expect([said(1), said(2)]).toEqual([
    expect.stringMatching(/^1 address in use is not signed/),
    expect.stringMatching(/^2 addresses in use are not signed/),
  ]);
  const alarms = [alarm('address-not-vouched', 'T1')];
  expect(codes({ unsigned: 1, alarms })).toEqual(['1 address-not-vouched']);
  const guest: Actor = { ...commandActor('guest'), projects: ['01a2090d-34ce-74bb-8614-90b6a574cc8b'] };
  expect(codes({ unsigned: 1, alarms, actor: guest })).toEqual(['2 attestation-missing']);
});

test('no backup at all is a concern from the first payment on', () => {
  expect(codes({ backupAt: null, wasPaid: false })).toEqual([]);
  expect(codes({ backupAt: null })).toEqual(['3 backup-missing']);
});

test('of ten thousand transfers and more the number is a bound', () => {
  const open = { count: 10_000, amountMicro: 1n, oldestAt: NOW };
  expect(listConcerns({ ...calm, open })[0]?.text).toBe(
    '10,000+ transfers match no open invoice: 0.000001 USDT in total, of the newest 10,000.',
  );
});

test("an adapter's failing callbacks are listed by their alarms, because the adapter itself never counts as failing", () => {
  const alarms = ['whe_1', 'whe_2', 'whe_2 given up'].map((subject) => alarm('webhook-failing', subject));
  const endpoints = [endpoint('failing', 'whe_1'), endpoint('active', 'whe_2')];
  const guest: Actor = { ...commandActor('guest'), projects: ['01a2090d-34ce-74bb-8614-90b6a574cc8b'] };
  const subjects = listConcerns({ ...calm, actor: guest, alarms, endpoints }).map(({ code, subject }) => [
    code,
    subject,
  ]);
  expect(subjects).toHaveLength(3);
  expect(subjects).toEqual(
    expect.arrayContaining([
      ['receiver-failing', 'whe_1'],
      ['webhook-failing', 'whe_2'],
      ['webhook-failing', 'whe_2 given up'],
    ]),
  );
});
