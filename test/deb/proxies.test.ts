import { spawn, spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { request as requestByTls } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../deploy/ha/free-ports.ts';
import { createCertificate } from '../support/create-certificate.ts';
import { createSandboxInvoice, runInSandbox, type SandboxProcess, startSandboxProcess } from '../support/sandbox.ts';
import { eventually } from '../support/service.ts';

const HOST = 'pay.example.com';
const FILES = new URL('../../deploy/proxies/', import.meta.url);

type Place = { folder: string; port: number; upstream: string };
type Proxy = {
  file: string;
  /** The replacements that put our ports and certificate into the example. Each must occur. */
  replace(place: Place): [from: string, to: string][];
  /** Wraps the example in a complete configuration. */
  around(example: string, place: Place): string;
  start(path: string): [program: string, ...args: string[]];
};

const PROXIES: Proxy[] = [
  {
    file: 'Caddyfile',
    replace: ({ folder, port, upstream }) => [
      [`${HOST} {\n`, `https://${HOST}:${port} {\n\ttls ${folder}/cert ${folder}/key\n`],
      ['127.0.0.1:8080', upstream],
    ],
    around: (example) => `{\n\tadmin off\n\tauto_https disable_redirects\n}\n${example}`,
    start: (path) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', path],
  },
  {
    file: 'nginx.conf',
    replace: ({ folder, port, upstream }) => [
      ['listen 443 ssl http2;', `listen 127.0.0.1:${port} ssl http2;`],
      ['/etc/ssl/pay.example.com.crt', `${folder}/cert`],
      ['/etc/ssl/pay.example.com.key', `${folder}/key`],
      ['127.0.0.1:8080', upstream],
    ],
    around: (example, { folder }) => {
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      );
      return `daemon off;\nerror_log stderr;\npid ${folder}/pid;\nevents {}\nhttp {\naccess_log off;\n${paths.join('\n')}\n${example}}\n`;
    },
    start: (path) => ['nginx', '-c', path],
  },
  {
    file: 'haproxy.cfg',
    replace: ({ folder, port, upstream }) => [
      ['bind :443', `bind 127.0.0.1:${port}`],
      ['/etc/haproxy/pay.example.com.pem', `${folder}/pem`],
      ['127.0.0.1:8080', upstream],
    ],
    around: (example) => example,
    start: (path) => ['haproxy', '-db', '-f', path],
  },
];

test.for(PROXIES)(
  'by deploy/proxies/$file a payer sees a payment at once, and Quittance sees the payer',
  async (proxy, context) => {
    const [program] = proxy.start('');
    if (spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0) {
      return context.skip(`needs ${program}: apt-get install ${program}`);
    }
    const folder = await mkdtemp(join(tmpdir(), 'quittance-proxy-'));
    // PostgreSQL's user must be able to pass through it.
    await chmod(folder, 0o711);
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const sandbox = await startSandbox(folder);
    const seen = await startRecorder(sandbox.file.baseUrl);
    const port = await startProxy(proxy, folder, seen.upstream);

    const invoice = await createSandboxInvoice(sandbox.file, 'order-1');
    const path = new URL(invoice.checkoutUrl).pathname;
    await eventually(
      () =>
        open(port, path).then(
          ({ status, close }) => [close(), status][1],
          () => 0,
        ),
      (status) => status === 200,
    );
    const headers = seen.requests.at(-1)?.headers ?? {};
    expect(String(headers['x-forwarded-for']).split(', ').at(-1)).toBe('127.0.0.1');
    expect(headers).toMatchObject({ 'x-forwarded-proto': 'https', host: expect.stringContaining(HOST) });

    const stream = await open(port, `${path}/live`);
    onTestFinished(stream.close);
    expect(stream).toMatchObject({ status: 200, type: expect.stringContaining('text/event-stream') });
    // It arrives while the answer is still open. A buffering proxy wouldn't show it yet.
    await expect.poll(stream.text).toContain('"state":"waiting"');
    expect(stream.hasEnded()).toBe(false);
    await runInSandbox(join(folder, 'data'), 'sandbox', 'pay', 'order-1');
    await expect.poll(stream.text).toContain('"state":"paid"');
  },
);

async function startSandbox(folder: string): Promise<SandboxProcess> {
  const dataDir = join(folder, 'data');
  await mkdir(dataDir);
  const sandbox = await startSandboxProcess(dataDir, {
    QUITTANCE_TRUST_PROXY: 'loopback',
    QUITTANCE_PUBLIC_URL: `https://${HOST}`,
  });
  onTestFinished(async () => void (await sandbox.end('SIGTERM')));
  return sandbox;
}

/** Starts a recorder between the proxy and Quittance, which passes every byte on immediately and records the proxy's requests. */
async function startRecorder(baseUrl: string) {
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((incoming, outgoing) => {
    requests.push({ path: incoming.url ?? '', headers: incoming.headers });
    const passed = request(
      `${baseUrl}${incoming.url}`,
      { method: incoming.method, headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
      },
    );
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { upstream: `127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

async function startProxy({ file, replace, around, start }: Proxy, folder: string, upstream: string): Promise<number> {
  const { key, cert } = createCertificate([HOST]);
  for (const [name, text] of Object.entries({ key, cert, pem: key + cert })) await writeFile(join(folder, name), text);
  const [port = 0] = await freePorts(1);
  const place = { folder, port, upstream };
  let example = await readFile(new URL(file, FILES), 'utf8');
  for (const [from, to] of replace(place)) {
    expect(example.split(from)).toHaveLength(2);
    example = example.replace(from, to);
  }
  const path = join(folder, file);
  await writeFile(path, around(example, place));
  const [program, ...args] = start(path);
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env['PATH'], HOME: folder },
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  return port;
}

/** Makes a request like the browser of a payer who pretends to come from another address. */
function open(port: number, path: string) {
  return new Promise<{ status: number; type: string; text(): string; hasEnded(): boolean; close(): void }>(
    (resolve, reject) => {
      const headers = { host: HOST, 'x-forwarded-for': '192.0.2.66' };
      const options = {
        host: '127.0.0.1',
        port,
        path,
        headers,
        servername: HOST,
        rejectUnauthorized: false,
        agent: false,
      };
      requestByTls(options, (response) => {
        let [text, hasEnded] = ['', false];
        response.setEncoding('utf8');
        response.on('data', (part) => {
          text += part;
        });
        response.on('error', () => undefined);
        response.on('close', () => {
          hasEnded = true;
        });
        const { statusCode: status = 0, headers: answered } = response;
        const type = answered['content-type'] ?? '';
        resolve({ status, type, text: () => text, hasEnded: () => hasEnded, close: () => void response.destroy() });
      })
        .on('error', reject)
        .end();
    },
  );
}
