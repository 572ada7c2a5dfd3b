import { expect, test } from 'vitest';
import { encodeId, timeOfId, uuidV7 } from '../../core/domain/ids.ts';
import { unixMs } from '../../core/domain/time.ts';
import type { Notification } from '../../core/store/outbox/notifications.ts';
import { composeNotification } from './notifier.ts';

const HERE = { name: 'pay.example.com', consoleUrl: 'https://console.example.com' };
const NOW = unixMs(1_790_000_000_000);
const rowAt = (at: number): Notification => ({
  ...{ id: uuidV7(at, new Uint8Array(10).fill(at % 251)), channelId: 'c', about: `alarm:${at}`, phase: 'raised' },
  ...{ isUrgent: false, title: 'ALARM', body: 'text', createdAt: NOW, seal: true },
});

test('a digest has an id of its own rows: in any order the same, with another row another', () => {
  const rows = [rowAt(NOW), rowAt(NOW + 1), rowAt(NOW + 2)];
  const { id } = composeNotification(rows, HERE);
  expect(composeNotification(rows.toReversed(), HERE).id).toBe(id);
  const others = [composeNotification(rows.slice(0, 2), HERE).id, composeNotification(rows.slice(0, 1), HERE).id];
  expect(new Set([id, ...others]).size).toBe(3);
  expect(timeOfId(encodeId('ntf', id))).toBe(NOW);
  expect(encodeId('ntf', id)).toMatch(/^ntf_[0-9a-z]{26}$/);
});

const ID = '01999999-9999-7999-8999-999999999999';

test.each([
  [`transfer:${ID}`, `/unmatched/${encodeId('trf', ID)}`],
  [`alarm:${ID}`, '/chain'],
  ['owner:7', '/settings/people'],
  ['summary:2026-09-01', '/'],
  ['transfer:odd', '/'],
])('a message about %s names the installation and leads to %s of its console', (about, path) => {
  const message = composeNotification([{ ...rowAt(NOW), about }], HERE);
  expect(message).toMatchObject({
    title: 'pay.example.com: ALARM',
    text: `text\n\nIn the console: https://console.example.com${path}`,
  });
  expect(composeNotification([{ ...rowAt(NOW), about }], { name: null, consoleUrl: null })).toMatchObject({
    ...{ title: 'ALARM', text: 'text' },
  });
});

test('a digest leads to the first page of the console', () => {
  const { title, text } = composeNotification([rowAt(NOW), rowAt(NOW + 1)], HERE);
  expect([title, text]).toEqual([
    'pay.example.com: Quittance: 2 notifications',
    expect.stringMatching(/console\.example\.com\/$/),
  ]);
});
