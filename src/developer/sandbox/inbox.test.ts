import { randomBytes } from 'node:crypto';
import { appendFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createWebhookSecret, signWebhook } from '../../core/webhooks/sign.ts';
import { startInbox } from './inbox.ts';

const NOW_MS = Date.UTC(2026, 8, 1, 12);
const SECRET = createWebhookSecret(randomBytes);
type Listed = { id: string; type: string; verified: boolean; attempts: number; reason?: string; body: unknown }[];

let folder: string;
let file: string;
let inbox: Awaited<ReturnType<typeof startInbox>>;
const start = async () => {
  const clock = { now: () => NOW_MS };
  inbox = await startInbox({ host: '127.0.0.1', port: 0, file, getSecret: async () => SECRET, clock });
};
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'inbox-'));
  file = join(folder, 'new', 'inbox.jsonl');
  await start();
});
afterEach(async () => {
  await inbox.stop();
  await rm(folder, { recursive: true });
});

const JSON_TYPE = { 'content-type': 'application/json' };
const bodyOf = (id: string, type = 'invoice.paid', invoiceId = 'inv_1') =>
  JSON.stringify({ id, type, data: { invoiceId } });
async function post(id: string, body = bodyOf(id), secret = SECRET, atMs = NOW_MS): Promise<number> {
  const headers = signWebhook({ id, timestampSeconds: atMs / 1000, body, secrets: [secret] });
  return (await fetch(inbox.url, { method: 'POST', headers: { ...headers, ...JSON_TYPE }, body })).status;
}
async function list(query = ''): Promise<Listed> {
  const answer = await fetch(inbox.url + query);
  return ((await answer.json()) as { data: Listed }).data;
}

test('a webhook is verified, kept and listed, newest last', async () => {
  expect(await list()).toEqual([]);
  expect([await post('evt_1'), await post('evt_2')]).toEqual([204, 204]);
  expect(await list()).toMatchObject([
    {
      id: 'evt_1',
      type: 'invoice.paid',
      receivedAt: '2026-09-01T12:00:00.000Z',
      verified: true,
      attempts: 1,
      headers: { 'webhook-id': 'evt_1', 'webhook-protocol': 'v2' },
      body: { id: 'evt_1', data: { invoiceId: 'inv_1' } },
    },
    { id: 'evt_2' },
  ]);
});

test('the list is filtered by type and by invoice', async () => {
  await post('evt_1', bodyOf('evt_1', 'invoice.confirming', 'inv_1'));
  await post('evt_2', bodyOf('evt_2', 'invoice.paid', 'inv_1'));
  await post('evt_3', bodyOf('evt_3', 'invoice.paid', 'inv_2'));
  const ids = async (query: string) => (await list(query)).map(({ id }) => id);
  expect(await ids('?type=invoice.paid')).toEqual(['evt_2', 'evt_3']);
  expect(await ids('?invoiceId=inv_1')).toEqual(['evt_1', 'evt_2']);
  expect(await ids('?invoiceId=inv_1&type=invoice.paid')).toEqual(['evt_2']);
  expect(await ids('?invoiceId=inv_3')).toEqual([]);
});

test('a repeat is acknowledged and counted, and not listed twice', async () => {
  expect([await post('evt_1'), await post('evt_1'), await post('evt_1')]).toEqual([204, 204, 204]);
  expect(await list()).toMatchObject([{ id: 'evt_1', attempts: 3 }]);
});

describe('what does not verify', () => {
  test('is answered with 400 and the reason, and listed as not verified', async () => {
    expect(await post('evt_1', bodyOf('evt_1'), createWebhookSecret(randomBytes))).toBe(400);
    expect(await post('evt_2', bodyOf('evt_2'), SECRET, NOW_MS - 301_000)).toBe(400);
    expect((await fetch(inbox.url, { method: 'POST', headers: JSON_TYPE, body: 'hello' })).status).toBe(400);
    expect(await list()).toMatchObject([
      { id: 'evt_1', verified: false, reason: expect.stringContaining('signature') },
      { id: 'evt_2', verified: false, reason: expect.stringContaining('timestamp') },
      { id: '', verified: false, reason: expect.stringContaining('webhook-id'), body: 'hello' },
    ]);
  });

  test('does not hide the true webhook with the same id', async () => {
    await post('evt_1', bodyOf('evt_1'), createWebhookSecret(randomBytes));
    expect(await post('evt_1')).toBe(204);
    expect((await list()).map(({ verified }) => verified)).toEqual([false, true]);
  });

  test('is bounded, and drives out no true one', async () => {
    await post('evt_true');
    const other = createWebhookSecret(randomBytes);
    for (let n = 0; n < 120; n++) await post(`evt_${n}`, 'x'.repeat(10_000), other);
    const listed = await list();
    expect(listed).toHaveLength(101);
    expect(listed[0]).toMatchObject({ id: 'evt_true', verified: true });
    expect(listed.at(-1)).toMatchObject({ id: 'evt_119', body: 'x'.repeat(2048) });
  });
});

describe('a page of another website', () => {
  const ask = (method: string, headers: Record<string, string>, body = '') =>
    new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const sending = request(inbox.url, { method, headers }, async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        resolve({ status: response.statusCode, text: Buffer.concat(chunks).toString() });
      });
      sending.on('error', reject).end(body);
    });

  test('is shown no webhooks under its own name, once that name resolves to this machine', async () => {
    await post('evt_1');
    const { port } = new URL(inbox.url);
    const answer = await ask('GET', { host: `evil.example:${port}` });
    expect(answer).toEqual({ status: 403, text: expect.stringContaining('Host') });
    expect(answer.text).not.toContain('evt_1');
    expect((await ask('GET', { host: `LOCALHOST:${port}` })).status).toBe(200);
  });

  test('fills no list by what browsers send without asking', async () => {
    const origin = 'https://evil.example';
    const statuses = [
      (await ask('POST', { 'content-type': 'text/plain' }, 'x')).status,
      (await ask('POST', {}, 'x')).status,
      (await ask('POST', { ...JSON_TYPE, origin }, 'x')).status,
    ];
    expect(statuses).toEqual([403, 403, 403]);
    expect(await list()).toEqual([]);
  });
});

describe('a restart', () => {
  test('keeps what was acknowledged, with its count', async () => {
    await post('evt_1');
    await post('evt_1');
    await post('evt_2', bodyOf('evt_2'), createWebhookSecret(randomBytes));
    const before = await list();
    for (const _ of [1, 2]) {
      await inbox.stop();
      await start();
      expect(await list()).toEqual(before);
    }
    expect(await post('evt_1')).toBe(204);
    expect(await list()).toMatchObject([{ id: 'evt_1', attempts: 3 }, { id: 'evt_2' }]);
  });

  test('passes over a line that a crash tore, and over what is not ours', async () => {
    await post('evt_1');
    await inbox.stop();
    await appendFile(file, '\n[]\nnull\n7\n{"id":"evt_torn","type":"invoice.pa');
    await start();
    await post('evt_2');
    await inbox.stop();
    await start();
    expect((await list()).map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
  });

  test('leaves the newest 1,000 in the file', async () => {
    await post('evt_0');
    await inbox.stop();
    const [line = ''] = (await readFile(file, 'utf8')).split('\n');
    await appendFile(
      file,
      Array.from({ length: 3000 }, (_, n) => `${line.replaceAll('evt_0', `evt_${n}`)}\n`).join(''),
    );
    await start();
    const listed = await list();
    expect([listed.length, listed[0]?.id, listed.at(-1)?.id]).toEqual([1000, 'evt_2000', 'evt_2999']);
    expect((await readFile(file, 'utf8')).trimEnd().split('\n')).toHaveLength(1000);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });
});

describe('bounds', () => {
  test('a body over 64 KiB is refused and not kept', async () => {
    const headers = { ...JSON_TYPE, 'content-length': 64 * 1024 + 1 };
    const status = await new Promise((resolve, reject) => {
      const sending = request(inbox.url, { method: 'POST', headers }, (response) => resolve(response.statusCode));
      sending.on('error', reject).end(Buffer.alloc(64 * 1024 + 1));
    });
    expect(status).toBe(413);
    expect(await list()).toEqual([]);
  });

  test('other methods and paths are refused', async () => {
    const answer = await fetch(inbox.url, { method: 'DELETE' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, POST']);
    expect((await fetch(`${inbox.url}other`, { method: 'POST', headers: JSON_TYPE })).status).toBe(404);
  });

  test('a port that is taken is named', async () => {
    const port = Number(new URL(inbox.url).port);
    const options = { host: '127.0.0.1', port, file, getSecret: async () => SECRET, clock: { now: () => NOW_MS } };
    await expect(startInbox(options)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  });
});
