import { expect, test } from 'vitest';
import { encodeId, timeOfId, uuidV7 } from '../domain/ids.ts';
import { unixMs } from '../domain/time.ts';
import type { Notification } from '../store/outbox/notifications.ts';
import { composeMessage } from './message.ts';

const NOW = unixMs(1_790_000_000_000);
const rowAt = (at: number): Notification => ({
  ...{ id: uuidV7(at, new Uint8Array(10).fill(at % 251)), channelId: 'c', about: `alarm:${at}`, phase: 'raised' },
  ...{ isUrgent: false, title: 'ALARM', body: 'text', createdAt: NOW, seal: true },
});

test('a digest has an id of its own rows: in any order the same, with another row another', () => {
  const rows = [rowAt(NOW), rowAt(NOW + 1), rowAt(NOW + 2)];
  const { id } = composeMessage(rows);
  expect(composeMessage(rows.toReversed()).id).toBe(id);
  const others = [composeMessage(rows.slice(0, 2)).id, composeMessage(rows.slice(0, 1)).id];
  expect(new Set([id, ...others]).size).toBe(3);
  expect(timeOfId(encodeId('ntf', id))).toBe(NOW);
  expect(encodeId('ntf', id)).toMatch(/^ntf_[0-9a-z]{26}$/);
});
