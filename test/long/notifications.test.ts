import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { startDevnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { expect, onTestFinished, test } from 'vitest';
import { newDirectory, runCli, startProcess } from '../cli/run-cli.ts';
import { startMailServer, startReceiver } from '../notify/fixture.ts';
import { SOURCE_COMMAND } from '../support/command.ts';
import { createTestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { call, eventually, type Json } from '../support/service.ts';
import { findSteadyPort } from '../support/steady-port.ts';

/** The promise in docs/guides/notifications.md. */
const PROMISED_MS = 60_000;
/** Only ends a test that hangs; a late notification is reported with its duration. */
const LIMIT_MS = 120_000;

const newAddress = () => accountToAddress(randomBytes(20).toString('hex') as AccountHex);

/** Starts `quittance start` like an operator, on a network with a block every second: every interval has its default. */
async function startAsOperatorsDo() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const blockMs = 1000;
  const devnet = await startDevnet({ dataDir: null, blockMs, genesisTimestampMs: Date.now() - 20 * blockMs });
  onTestFinished(() => devnet.stop());
  devnet.mineUntilSolid();
  const folder = newDirectory();
  const disk = join(folder, 'disk');
  await mkdir(disk);
  await symlink(disk, join(folder, 'backups'));
  const port = await findSteadyPort();
  const env = {
    ...{ DATABASE_URL: database.connectionString, QUITTANCE_MASTER_KEY: randomBytes(32).toString('base64') },
    ...{ QUITTANCE_DEVNET_NODES: devnet.url, QUITTANCE_DEVNET_USDT: devnet.usdtContract },
    ...{ QUITTANCE_PORT: `${port}`, QUITTANCE_METRICS_PORT: 'off', QUITTANCE_WEBHOOK_LOCAL_TARGETS: 'allow' },
    ...{ QUITTANCE_BACKUP_DIR: join(folder, 'backups'), QUITTANCE_DATA_DIR: join(folder, 'data') },
  };
  const cli = async (...args: string[]): Promise<Json> => {
    const { code, json, stdout } = await runCli([...args, '--json'], { env });
    return code === 0 ? json : expect.fail(`${args.join(' ')}: ${stdout}`);
  };
  const service = startProcess(['start'], { env, command: SOURCE_COMMAND });
  onTestFinished(async () => {
    service.kill('SIGTERM');
    await once(service, 'exit');
  });
  let output = '';
  for (const stream of [service.stdout, service.stderr])
    stream.on('data', (chunk) => {
      output += chunk;
    });
  await eventually(
    () => output,
    (text) => text.includes('"msg":"ready"') && text.includes('created and verified a backup'),
  );
  const sql = (text: string) => withClient(database.owner, (client) => client.query(text));
  /** Replaces the backup disk: it's gone, and the directory in its place accepts no file. */
  const mount = async (what: string) => {
    await symlink(what, join(folder, 'next'));
    await rename(join(folder, 'next'), join(folder, 'backups'));
  };
  return {
    devnet,
    cli,
    sql,
    url: `http://127.0.0.1:${port}`,
    loseDisk: () => mount('/proc'),
    findDisk: () => mount(disk),
  };
}

type Operators = Awaited<ReturnType<typeof startAsOperatorsDo>>;

/** Adds one channel of each kind. `texts` returns the received texts, without the services' hidden parts. */
async function addChannels({ cli }: Operators): Promise<Record<string, () => string[]>> {
  const { mails, port } = await startMailServer();
  const mail = [
    '--url',
    `smtp://quittance:secret@127.0.0.1:${port}`,
    '--from',
    'q@example.com',
    '--to',
    'a@example.com',
  ];
  await cli('notify', 'add', 'email', '--own-network', ...mail);
  const texts: Record<string, () => string[]> = {
    email: () => mails.map(({ text }) => text.replace(/=\r\n/g, '').replace(/\r\n[ \t]/g, ' ')),
  };
  for (const kind of ['telegram', 'slack', 'discord', 'ntfy', 'webhook']) {
    const { received, url } = await startReceiver();
    const more = kind === 'telegram' ? ['--token', `12345678:${'a'.repeat(35)}`, '--chat', '-100'] : [];
    await cli('notify', 'add', kind, '--own-network', '--url', kind === 'ntfy' ? `${url}/topic` : url, ...more);
    texts[kind] = () => received.map(({ body }) => body.replaceAll('\\', ''));
  }
  return texts;
}

type Cause = { name: string; title: string; over: string; begin(): Promise<void>; end(): Promise<void> };

/** The five causes that operators are promised notifications for. */
async function prepareCauses({ devnet, cli, sql, url, loseDisk, findDisk }: Operators): Promise<Cause[]> {
  const project = async (name: string, ...more: string[]) => {
    const { projectId } = await cli('project', 'create', '--name', name, '--network', 'devnet', ...more);
    const address = newAddress();
    await cli('address', 'add', '--project', projectId, '--no-check', address);
    const { apiKey } = await cli('key', 'create', '--project', projectId);
    return { projectId, apiKey, address };
  };
  const order = async (apiKey: string, externalId: string) => {
    const headers = { 'x-api-key': apiKey, 'content-type': 'application/json', 'idempotency-key': externalId };
    const body = JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId });
    expect((await call(`${url}/v1/invoices`, { method: 'POST', headers, body })).status).toBe(201);
  };
  const shop = await project('Shop');
  const narrow = await project('Narrow', '--max-surcharge', '0.0001');
  const shopReceiver = await startReceiver();
  await cli('webhook', 'add', '--project', narrow.projectId, '--url', shopReceiver.url);
  const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
  const alarm = (kind: string) => ({
    name: kind,
    title: `ALARM on devnet: ${kind}`,
    over: `Resolved on devnet: ${kind}`,
  });
  return [
    {
      ...alarm('schema-changed'),
      begin: async () => void (await sql('alter table invoices disable trigger invoices_are_kept')),
      end: async () => void (await sql('alter table invoices enable trigger invoices_are_kept')),
    },
    {
      ...{ name: 'money without an order', title: 'Unmatched payment on devnet', over: 'Settled on devnet' },
      begin: async () => {
        await payer.transfer({ contract: devnet.usdtContract, to: shop.address, amountMicro: 7_000_000n });
        const paidAt = devnet.head().number + 1;
        await eventually(
          () => devnet.solid().number,
          (solid) => solid >= paidAt,
        );
      },
      end: async () => {
        const { data } = await cli('transfers', 'list', '--project', shop.projectId);
        await cli('transfers', 'resolve', data[0].transferId, '--as', 'ignored');
      },
    },
    {
      ...alarm('webhook-failing'),
      // Pretends that a quarter of an hour is over, because that duration isn't one of our intervals.
      begin: async () => void (await sql(`update webhook_endpoints set failing_since = now() - interval '15 minutes'`)),
      end: async () => void (await sql('update webhook_endpoints set failing_since = null')),
    },
    {
      ...alarm('capacity-low'),
      begin: async () => {
        for (let n = 0; n < 8; n += 1) await order(narrow.apiKey, `order-${n}`);
      },
      end: async () => {
        const addresses = Array.from({ length: 20 }, newAddress);
        await cli('address', 'add', '--project', narrow.projectId, '--no-check', ...addresses);
      },
    },
    { ...alarm('backup-old'), begin: loseDisk, end: findDisk },
  ];
}

test('each of five causes, and its end, reaches each of six channels once within a minute, with the intervals of production', {
  timeout: 3 * LIMIT_MS,
}, async () => {
  const operators = await startAsOperatorsDo();
  const causes = await prepareCauses(operators);
  const channels = await addChannels(operators);
  const pairs = causes.flatMap((cause) =>
    Object.entries(channels).map(([channel, texts]) => ({ cause, channel, texts })),
  );
  /** Begins or ends all causes at once, and waits until every channel was notified. Returns the seconds that each took. */
  const measure = async (what: 'begin' | 'end') => {
    const doneMs = new Map<Cause, number>();
    const toldMs = new Map<(typeof pairs)[number], number>();
    const done = Promise.all(causes.map((cause) => cause[what]().then(() => doneMs.set(cause, Date.now()))));
    const untold = () =>
      pairs.flatMap((pair) => {
        const { cause, channel, texts } = pair;
        const title = what === 'begin' ? cause.title : cause.over;
        if (!toldMs.has(pair) && texts().some((text) => text.includes(title))) toldMs.set(pair, Date.now());
        return toldMs.has(pair) ? [] : [`${channel}: ${title}`];
      });
    await Promise.all([done, eventually(untold, (left) => left.length === 0, LIMIT_MS)]);
    return pairs.map((pair) => {
      const ms = (toldMs.get(pair) ?? Number.NaN) - (doneMs.get(pair.cause) ?? Number.NaN);
      return { name: pair.cause.name, what, channel: pair.channel, seconds: Math.max(0, Math.round(ms / 100) / 10) };
    });
  };
  const figures = [...(await measure('begin')), ...(await measure('end'))];
  for (const { name } of causes)
    for (const what of ['begin', 'end']) {
      const row = figures.filter((each) => each.name === name && each.what === what);
      console.log(`${name}, ${what}: ${row.map(({ channel, seconds }) => `${channel} ${seconds} s`).join(', ')}`);
    }
  expect(figures.filter(({ seconds }) => !(seconds * 1000 <= PROMISED_MS))).toEqual([]);
  const times = pairs.flatMap(({ cause, channel, texts }) =>
    [cause.title, cause.over].map(
      (what) => `${channel}: ${what}: ${texts().filter((text) => text.includes(what)).length}`,
    ),
  );
  expect(times.filter((each) => !each.endsWith(': 1'))).toEqual([]);
});
