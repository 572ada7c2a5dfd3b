import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { commandActor, type Role } from '../../src/faces/operator/actor.ts';
import { createAdminKeyOperation } from '../../src/faces/operator/subjects/admin-keys.ts';
import { removeChannel } from '../../src/faces/operator/subjects/notify.ts';
import { changeRole, invitePerson, resetPerson } from '../../src/faces/operator/subjects/people.ts';
import { bodiesOf, createWorld, eventually, must, startMailServer, startReceiver } from './fixture.ts';

test('each channel is told once that an alarm is raised, and once that it is over, whichever process does it', async () => {
  const world = await createWorld();
  const [one, two] = [await startReceiver(), await startReceiver()];
  await world.addChannel('slack', { url: `${one.url}/services/a` });
  await world.addChannel('discord', { url: `${two.url}/api/webhooks/b` });
  world.start();
  world.start();
  await world.raise('capacity-low', 'prj_1', 'prj_1 is running out of payable amounts');
  await eventually(() => expect([one.received.length, two.received.length]).toEqual([1, 1]));
  await world.raise('capacity-low', 'prj_1', 'seen again');
  await world.resolve('capacity-low', 'prj_1');
  await eventually(() => expect([one.received.length, two.received.length]).toEqual([2, 2]));
  await world.raise('order-flood', 'prj_1');
  await eventually(() => expect([one.received.length, two.received.length]).toEqual([3, 3]));
  expect(bodiesOf(one.received).map(({ text }) => String(text).split('\n')[0])).toEqual([
    'ALARM on devnet: capacity-low (prj_1)',
    'Resolved on devnet: capacity-low (prj_1)',
    'ALARM on devnet: order-flood (prj_1)',
  ]);
  expect(one.received[0]?.path).toBe('/services/a');
  expect(String(one.received[0]?.json['text'])).toContain('prj_1 is running out of payable amounts');
  expect(two.received[0]?.json).toMatchObject({ allowed_mentions: { parse: [] } });
});

test('a channel that is added is told what is open, and nothing that was over before', async () => {
  const world = await createWorld();
  await world.raise('blind', '');
  await world.raise('not-solid', '');
  await world.resolve('not-solid', '');
  const { received, url } = await startReceiver();
  await world.addChannel('slack', { url });
  world.start();
  await eventually(() => expect(received).toHaveLength(1));
  // It was raised and ended while no notifier was running, and is reported anyway.
  const away = world.start();
  await away.stop();
  await world.raise('nodes-disagree', 'x');
  await world.resolve('nodes-disagree', 'x');
  await eventually(() => expect(received).toHaveLength(3));
  expect(bodiesOf(received).map(({ text }) => String(text).split('\n')[0])).toEqual([
    'ALARM on devnet: blind',
    'ALARM on devnet: nodes-disagree (x)',
    'Resolved on devnet: nodes-disagree (x)',
  ]);
});

test('money without an order is told, and that somebody decided about it', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  const before = await world.addStray(1_000_000);
  await world.addChannel('slack', { url });
  world.start();
  const stray = await world.addStray(25_000_137);
  await eventually(() => expect(received).toHaveLength(1));
  const told = String(received[0]?.json['text']);
  expect(told).toContain('Unmatched payment on devnet: 25.000137 USDT to shop');
  expect(told).toContain(stray.projectId);
  expect(told).toContain(`quittance explain ${stray.txId}`);
  expect(told).not.toContain(before.txId);
  await world.sql(
    `insert into transfer_resolutions (project_id, transfer_id, resolution, note, resolved_by, resolved_at)
     select project_id, id, 'refunded', '', 'anna', now() from transfers where project_id = $1`,
    [stray.project],
  );
  await eventually(() => expect(received).toHaveLength(2));
  expect(received[1]?.json['text']).toContain('Settled on devnet: 25.000137 USDT to shop, refunded');
});

test('every channel is told of a new owner at once, also in its quiet hours, and of nobody else', async () => {
  const world = await createWorld();
  const [one, two] = [await startReceiver(), await startReceiver()];
  const deps = { ...world, random: randomBytes, consoleUrl: 'https://console.example' };
  const [anna, bert] = [commandActor('anna'), { ...commandActor('bert', '192.0.2.9'), kind: 'console' as const }];
  const invite = (login: string, role: Role) =>
    invitePerson.run(deps, bert, { login, name: login, role, projects: null });
  const key = (name: string, role: Role) =>
    createAdminKeyOperation.run(deps, anna, { name, role, projects: null, expiresAt: null, allowedCidrs: null });
  await invite('before', 'owner');
  // Whatever the time, one of them is in its quiet hours.
  await world.addChannel('slack', { url: `${one.url}/services/a`, quiet: '00:00-12:00' });
  await world.addChannel('slack', { url: `${two.url}/services/b`, quiet: '12:00-00:00' });
  world.start();
  await key('reader', 'viewer');
  await invite('vera', 'viewer');
  const { adminKeyId } = await key('cron', 'owner');
  const { personId } = await invite('olga', 'owner');
  await changeRole.run(deps, bert, { person: 'vera', role: 'owner' });
  await resetPerson.run(deps, bert, { person: 'before' });
  await changeRole.run(deps, bert, { person: 'olga', role: 'owner' });
  for (const { received } of [one, two]) {
    await eventually(() => expect(received).toHaveLength(4));
    const texts = bodiesOf(received).map(({ text }) => String(text));
    expect(texts.map((text) => text.split('\n')[0])).toEqual(
      ['cron', 'olga', 'vera', 'before'].map((name) => `A new owner: ${name}`),
    );
    expect(texts[0]).toContain('anna created an admin key with the owner role');
    expect(texts[0]).toContain(`quittance admin-key revoke ${adminKeyId}`);
    expect(texts[1]).toContain('bert (192.0.2.9) invited an owner');
    expect(texts[1]).toContain(`quittance user remove ${personId}`);
  }
});

describe('a channel that hangs or fails', () => {
  test('delays no other, is tried again, and gets in the end what it missed, once', async () => {
    const world = await createWorld();
    let isHanging = true;
    const hanging = await startReceiver((response) => {
      if (!isHanging) response.writeHead(200).end();
    });
    const good = await startReceiver();
    await world.addChannel('slack', { url: hanging.url });
    await world.addChannel('slack', { url: good.url });
    const first = world.start();
    await world.raise('blind', '');
    await eventually(() => expect(good.received).toHaveLength(1));
    await world.raise('halted', '');
    await eventually(() => expect(good.received).toHaveLength(2));
    await eventually(async () =>
      expect(await world.sql(`select from notifications where status = 'sent'`)).toHaveLength(2),
    );
    await first.stop();
    // Only the hanging channel still gets requests, so no other can seem to hang on a slow machine.
    const second = world.start({ attemptMs: 300 });
    await eventually(() => expect(second.lines.join('')).toContain('timeout: no response within 0.3 s'));
    await second.stop();
    isHanging = false;
    const tried = hanging.received.length;
    world.advance(60_000);
    world.start();
    await eventually(async () =>
      expect(await world.sql(`select from notifications where status <> 'sent'`)).toHaveLength(0),
    );
    expect(hanging.received.length - tried).toBe(2);
    expect(good.received).toHaveLength(2);
  });

  test('is an alarm that the others tell of, and that ends when a message arrives', async () => {
    const world = await createWorld();
    let status = 503;
    const bad = await startReceiver((response) => response.writeHead(status).end());
    const good = await startReceiver();
    const { channelId } = await world.addChannel('slack', { url: bad.url, name: 'the bad one' });
    await world.addChannel('slack', { url: good.url });
    const { lines } = world.start();
    await world.raise('blind', '');
    await eventually(() => expect(lines.join('')).toContain('http_503'));
    world.advance(4 * 60_000);
    await eventually(() => expect(bad.received.length).toBeGreaterThan(1));
    expect(await world.sql(`select from alarms where kind = 'notify-failing'`)).toHaveLength(0);
    world.advance(61_000);
    await eventually(() => expect(good.received).toHaveLength(2));
    expect(good.received[1]?.json['text']).toContain(`ALARM on devnet: notify-failing (${channelId})`);
    expect(good.received[1]?.json['text']).toContain('the bad one');
    status = 200;
    world.advance(600_000);
    await eventually(() => expect(good.received).toHaveLength(3));
    expect(good.received[2]?.json['text']).toContain(`Resolved on devnet: notify-failing (${channelId})`);
    expect(await world.titles()).not.toContain('alarm raised waiting');
  });

  test('has its messages given up after a day', async () => {
    const world = await createWorld();
    const bad = await startReceiver((response) => response.writeHead(500).end());
    await world.addChannel('slack', { url: bad.url });
    const first = world.start();
    await world.raise('blind', '');
    await eventually(() => expect(bad.received.length).toBeGreaterThan(0));
    await first.stop();
    world.advance(25 * 3_600_000);
    world.start();
    await eventually(async () => expect(await world.titles()).toContain('alarm raised given-up'));
  });
});

test('a storm goes in one message, urgent things first', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  await world.addChannel('slack', { url });
  for (let n = 0; n < 40; n += 1) await world.raise('capacity-low', `prj_${n}`);
  await world.raise('row-changed', 'x');
  world.start();
  await eventually(async () =>
    expect(await world.sql(`select from notifications where status = 'sent'`)).toHaveLength(41),
  );
  expect(received).toHaveLength(1);
  const lines = String(received[0]?.json['text']).split('\n');
  expect(lines[0]).toBe('Quittance: 41 notifications');
  expect(lines[2]).toBe('- ALARM on devnet: row-changed (x)');
  expect(lines).toContain('… and 21 more');
});

test('in quiet hours only what is urgent passes; the rest comes in one message after them', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  const time = (ms: number) => new Date(ms).toISOString().slice(11, 16);
  const quiet = `${time(world.now() - 60_000)}-${time(world.now() + 3_600_000)}`;
  await world.addChannel('slack', { url, quiet });
  world.start();
  await world.raise('capacity-low', 'prj_1');
  await world.raise('order-flood', 'prj_1');
  await world.raise('row-changed', 'x');
  await eventually(() => expect(received).toHaveLength(1));
  await eventually(async () =>
    expect((await world.titles()).sort()).toEqual([
      ...['alarm raised sent', 'alarm raised waiting', 'alarm raised waiting'],
    ]),
  );
  expect(received[0]?.json['text']).toContain('row-changed');
  world.advance(3_700_000);
  await eventually(() => expect(received).toHaveLength(2));
  expect(received[1]?.json['text']).toContain('Quittance: 2 notifications');
});

test('a summary is sent once a day, from its minute on', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  // It will soon be noon, whenever the test runs.
  world.advance(86_400_000 - (world.now() % 86_400_000) + 11 * 3_600_000);
  await world.addStray(5_000_000);
  await world.addChannel('slack', { url, summary: '12:00' });
  const first = world.start();
  world.advance(3_600_000);
  await eventually(() => expect(received).toHaveLength(1));
  const text = String(received[0]?.json['text']);
  expect(text).toContain(`Quittance, ${new Date(world.now()).toISOString().slice(0, 10)}: the last 24 hours`);
  expect(text).toMatch(/Audit log: entry 1, [0-9a-f]{64}/);
  await eventually(async () => expect(await world.titles()).toContain('summary raised sent'));
  await first.stop();
  world.start();
  world.advance(86_400_000);
  await eventually(() => expect(received).toHaveLength(2));
  expect(await world.sql(`select from notifications where about like 'summary:%'`)).toHaveLength(2);
});

test('a removed channel is told nothing more, and what led there is gone', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  const { channelId } = await world.addChannel('slack', { url, name: 'gone' });
  world.start();
  await world.raise('blind', '');
  await eventually(() => expect(received).toHaveLength(1));
  const [row] = await world.sql('select id from notify_channels');
  const uuid = String(row?.['id']);
  expect(channelId).toBe(encodeId('chn', uuid));
  await removeChannel.run(world, commandActor('anna'), { channelId, uuid });
  await world.addChannel('slack', { url: `${url}/second`, name: 'gone' });
  await world.raise('halted', '');
  await eventually(() => expect(received.filter(({ path }) => path === '/second')).toHaveLength(2));
  expect(received).toHaveLength(3);
  expect(
    await world.sql('select octet_length(sealed) as bytes from notify_channels where removed_at is not null'),
  ).toEqual([{ bytes: 0 }]);
});

test('a mail server is told with its login, in one message that is known as the same when it is sent again', async () => {
  const world = await createWorld();
  const { mails, port } = await startMailServer();
  const mail = { from: 'quittance@example.com', to: ['anna@example.com', 'bert@example.com'] };
  await world.addChannel('email', { ...mail, url: `smtp://quittance:secret@127.0.0.1:${port}` });
  world.start();
  await world.raise('row-changed', 'x', 'Zeile geändert: ₮');
  await eventually(() => expect(mails).toHaveLength(1));
  const { text, ...envelope } = must(mails[0]);
  expect(envelope).toMatchObject({ from: mail.from, to: mail.to, user: 'quittance', isSecure: true });
  expect(text).toContain('Subject: ALARM on devnet: row-changed (x)');
  expect(text).toContain('Auto-Submitted: auto-generated');
  const [row] = await world.sql('select id from notifications');
  expect(text).toContain(`Message-ID: <${encodeId('ntf', String(row?.['id']))}@quittance.invalid>`);
});

test('what is stored of a target opens nowhere but in its row, and no row shows it', async () => {
  const world = await createWorld();
  const { received, url } = await startReceiver();
  await world.addChannel('ntfy', { url: `${url}/hidden-topic`, token: 'tk_secret' });
  await world.addChannel('ntfy', { url: `${url}/other-topic`, token: 'tk_other' });
  const rows = JSON.stringify(
    await world.sql(`select c::text from notify_channels c union all select a::text from operator_actions a`),
  );
  for (const secret of ['hidden-topic', 'tk_secret', Buffer.from('hidden-topic').toString('hex')])
    expect(rows).not.toContain(secret);
  await world.sql(
    `update notify_channels set sealed = (select sealed from notify_channels order by id limit 1) where id = (select id from notify_channels order by id desc limit 1)`,
  );
  const { lines } = world.start();
  await world.raise('blind', '');
  await eventually(() => expect(received).toHaveLength(1));
  expect(received[0]).toMatchObject({
    headers: { authorization: 'Bearer tk_secret' },
    json: { topic: 'hidden-topic' },
  });
  await eventually(() => expect(lines.join('')).toContain('the stored target was changed'));
});
