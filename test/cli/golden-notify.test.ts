import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, onTestFinished, test, vi } from 'vitest';
import { createTestDatabase } from '../support/postgres.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory } from './run-cli.ts';

// See golden.test.ts.

afterEach(() => {
  vi.useRealTimers();
});

/** Answers with the current `status`. */
async function startReceiver() {
  const answering = { status: 200 };
  const server = createServer((request, response) => {
    response.sendDate = false;
    request.resume().on('end', () => response.writeHead(answering.status).end());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { answering, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('channels are added, tested, removed and refused as they were', async () => {
  const { answering, url } = await startReceiver();
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { run, both, finishAudited } = startRecording(
    'notify',
    {
      ...{ DATABASE_URL: database.connectionString, DATABASE_OWNER_URL: database.ownerString },
      ...{ QUITTANCE_DATA_DIR: newDirectory(), QUITTANCE_MASTER_KEY: 'A'.repeat(42).concat('A=') },
    },
    { [new URL(url).host]: '127.0.0.1:XXXXX' },
  );
  const add = (kind: string, ...args: string[]) => ['notify', 'add', kind, ...args];
  await run(['migrate']);
  await both(['notify', 'list']);
  const slack = ['--url', `${url}/services/T1/B2/c3`];
  for (const wrong of [
    add('slack'),
    add('slack', ...slack),
    add('slack', ...slack, '--own-network', '--token', 'x'),
    add('slack', '--url', 'http://169.254.169.254/latest', '--own-network'),
    add('slack', '--url', 'hooks.slack.com/services/x'),
    add('email', '--url', 'smtps://mail.example', '--from', 'quittance', '--to', 'anna@shop.example'),
    add('email', '--url', 'https://mail.example', '--from', 'quittance@shop.example', '--to', 'anna@shop.example'),
    add('email', '--url', 'smtp://10.0.0.1', '--from', 'quittance@shop.example', '--to', 'anna@shop.example'),
    add('telegram', '--token', '12:short', '--chat', '-100123'),
    add('telegram', '--token', `12:${'x'.repeat(35)}`, '--chat', 'here'),
    add('ntfy', '--url', 'https://ntfy.example/'),
    add('webhook', '--url', 'https://tell.example/', '--secret', 'short'),
    add('slack', ...slack, '--own-network', '--quiet', '22-7'),
    add('slack', ...slack, '--own-network', '--summary', 'noon'),
    add('slack', ...slack, '--own-network', '--time-zone', 'Mars/Olympus'),
    add('odd'),
  ]) {
    await run([...wrong, '--json']);
  }
  const times = ['--quiet', '22:00-07:00', '--summary', '08:00', '--time-zone', 'Europe/Berlin'];
  const { channelId } = await run([
    ...add('slack', ...slack, '--own-network', '--name', ' on call ', ...times),
    '--json',
  ]);
  await run(add('slack', ...slack, '--own-network', '--name', 'on call'));
  const mail = ['--from', 'quittance@shop.example', '--to', 'anna@shop.example,bert@shop.example'];
  await run(add('email', '--url', '-', ...mail), { stdin: 'smtps://quittance:secret@mail.example\n' });
  await run(add('telegram', '--token', `12:${'x'.repeat(35)}`, '--chat', '-100123'));
  await run(add('ntfy', '--url', 'https://ntfy.example/hidden-topic'));
  await run(add('webhook', '--url', 'https://tell.example/hook?token=hidden'));
  await run(add('discord', '--url', 'https://discord.example/api/webhooks/1/hidden'));
  await both(['notify', 'test', channelId]);
  answering.status = 500;
  await both(['notify', 'test', channelId]);
  await both(['notify', 'list']);
  await both(['notify', 'remove', channelId]);
  await both(['notify', 'test', channelId]);
  await both(['notify', 'remove', 'chn_1']);
  await run(['notify', 'list']);
  await finishAudited();
});
