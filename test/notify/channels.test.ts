import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createWebhookSender } from '../../src/core/webhooks/send.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { startReceiverWatch } from '../../src/core/webhooks/watch-endpoints.ts';
import type { Target } from '../../src/faces/notify/channel-target.ts';
import { sendMessage } from '../../src/faces/notify/send-message.ts';
import { addTestEndpoint } from '../support/key-ring.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { createWorld, eventually, must, startMailServer, startReceiver } from './fixture.ts';

const item = { about: 'alarm:x', phase: 'raised', title: 'ALARM: <!channel> *x*' } as const;
const MESSAGE = { id: randomUUID(), title: item.title, text: 'a & b', isUrgent: true, items: [item] };

/** Sends one message like a channel does. */
async function send(target: Target, attemptMs = PATIENCE_MS) {
  const sender = createWebhookSender({ connections: 1, timeoutMs: attemptMs });
  onTestFinished(() => sender.close());
  const stopping = new AbortController().signal;
  return sendMessage({ sender, now: () => unixMs(Date.now()), stopping, attemptMs }, target, MESSAGE);
}

const mailTo = (port: number, more: Partial<Extract<Target, { kind: 'email' }>> = {}): Target => ({
  ...{ kind: 'email', isOwnNetwork: true, host: '127.0.0.1', port, isTls: false, login: null },
  ...{ from: 'quittance@example.com', to: ['anna@example.com'], ...more },
});

test('each service gets a message as it takes one, in which nothing calls everybody', async () => {
  const { received, url } = await startReceiver();
  const own = { isOwnNetwork: true };
  await send({ kind: 'telegram', ...own, url, token: '1:abc', chat: '-100' });
  await send({ kind: 'slack', ...own, url });
  await send({ kind: 'discord', ...own, url });
  await send({ kind: 'ntfy', ...own, url, topic: 'topic', token: null });
  expect(received.map(({ path, json }) => [path, json])).toMatchObject([
    ['/bot1:abc/sendMessage', { chat_id: '-100', text: 'ALARM: <!channel> *x*\n\na & b' }],
    ['/', { text: 'ALARM: &lt;!channel&gt; *x*\n\na &amp; b', mrkdwn: false }],
    ['/', { content: 'ALARM: \\<!channel\\> \\*x\\*\n\na & b' }],
    ['/', { topic: 'topic', title: item.title, message: 'a & b', priority: 5 }],
  ]);
});

test('a webhook is signed, as the published verifier says', async () => {
  const { received, url } = await startReceiver();
  const secret = createWebhookSecret(randomBytes);
  expect(await send({ kind: 'webhook', isOwnNetwork: true, url, secret })).toEqual({ kind: 'sent' });
  const { body, headers } = must(received[0]);
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    type: 'notification',
    data: { title: item.title, isUrgent: true, items: [item] },
  });
});

test.each(['slack', 'discord', 'ntfy', 'telegram', 'webhook'] as const)(
  'a page for logging in does not pass as the %s that took a message',
  async (kind) => {
    const { url } = await startReceiver((response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Log in</title>'),
    );
    const more = { token: '1:abc', chat: '1', topic: 't', secret: createWebhookSecret(randomBytes) };
    const sent = await send({ kind, isOwnNetwork: true, url, ...more } as Target);
    expect(sent).toMatchObject({ kind: 'failed', error: expect.stringMatching(/^web_page: /) });
  },
);

test('what is in no own network is not reached without saying so', async () => {
  const { received, url } = await startReceiver();
  const refused = { kind: 'failed', error: expect.stringContaining('target_refused') };
  expect(await send({ kind: 'slack', isOwnNetwork: false, url })).toMatchObject(refused);
  expect(await send(mailTo(1, { isOwnNetwork: false }))).toMatchObject(refused);
  expect(received).toEqual([]);
});

test('a mail server that refuses, or hangs, is told apart', async () => {
  const { port } = await startMailServer();
  const login = { user: 'quittance', password: 'wrong' };
  expect(await send(mailTo(port, { login }))).toMatchObject({ error: expect.stringContaining('smtp_535') });
  const silent = createServer((socket) => void socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  expect(await send(mailTo((silent.address() as AddressInfo).port), 300)).toMatchObject({
    error: 'timeout: the mail server did not accept the message in time',
  });
});

test('a receiver that fails for 15 minutes is an alarm until it is delivered to', async () => {
  const world = await createWorld();
  const projectId = randomUUID();
  await world.sql(`insert into projects (id, name, network) values ($1, 'shop', 'devnet')`, [projectId]);
  const { id } = await addTestEndpoint(world.db, {
    projectId,
    url: 'https://shop.example/hook?t=1',
    secret: createWebhookSecret(randomBytes),
  });
  await world.sql(`update webhook_endpoints set failing_since = now() where id = $1`, [id]);
  const watch = startReceiverWatch({ ...world, log: createLogger({ level: 'silent' }), checkMs: 20 });
  onTestFinished(() => watch.stop());
  const open = () => world.sql(`select detail from alarms where kind = 'webhook-failing' and resolved_at is null`);
  world.advance(14 * 60_000);
  expect(await open()).toEqual([]);
  world.advance(70_000);
  await eventually(async () => expect(await open()).toHaveLength(1));
  expect(JSON.stringify(await open())).not.toContain('t=1');
  await world.sql(`update webhook_endpoints set failing_since = null where id = $1`, [id]);
  await eventually(async () => expect(await open()).toEqual([]));
});
