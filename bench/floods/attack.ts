import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { uuidV7 } from '../../src/core/domain/ids.ts';

/**
 * `half-open`: connections that begin a request and never finish it; if one is closed, it's opened again, up to 500 per second. `junk`:
 * reads with well-formed keys that don't exist. `openapi`: requests for the document. `sign-in`: wrong passwords for one person, with a
 * different network for each connection. The last three wait for each response before they send the next request.
 */
export type AttackJob = {
  kind: 'half-open' | 'junk' | 'openapi' | 'sign-in';
  url: string;
  /** Loopback has 2^24 addresses, so an attacker can use a different one from the clients. `null` gives each connection its own. */
  from: string | null;
  connections: number;
  /** The maximum for all connections together. */
  perSecond: number;
  seconds: number;
};

/** Responses by status; `opened` counts connections. */
export type AttackResult = { seconds: number; opened: number; open: number; statuses: Record<string, number> };

const KEYS = 30_000;
const TICK_MS = 10;
/** Connections to open per tick: 13,000 in less than three seconds, repeatedly. */
const [OPEN_PER_TICK, AGAIN_PER_TICK] = [50, 5];

process.on('message', (job: AttackJob) => {
  attack(job).then(
    (result) => process.send?.(result),
    (error: Error) => process.send?.({ error: error.message }),
  );
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function attack(job: AttackJob): Promise<AttackResult> {
  const requests = requestsOf(job);
  const { hostname, port } = new URL(job.url);
  const sockets = new Set<Socket>();
  const idle: Socket[] = [];
  const statuses: Record<string, number> = {};
  let [opened, due, again, asked, given] = [0, job.connections, 0, 0, 0];
  const open = () => {
    opened += 1;
    const socket = connect({
      host: hostname,
      family: 4,
      port: Number(port),
      localAddress: job.from ?? `127.9.${(opened >> 8) & 255}.${opened & 255}`,
    });
    sockets.add(socket);
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('connect', () => {
      if (job.kind === 'half-open') socket.write('GET /v1/invoices HTTP/1.1\r\nHost: x\r\n');
      else idle.push(socket);
    });
    socket.on('close', () => {
      sockets.delete(socket);
      again += 1;
    });
    let isBegun = false;
    let left = 0;
    socket.on('data', (text: string) => {
      if (!isBegun) {
        const status = text.slice(9, 12);
        statuses[status] = (statuses[status] ?? 0) + 1;
        const end = text.indexOf('\r\n\r\n');
        left = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0) + end + 4;
        isBegun = true;
      }
      left -= text.length;
      if (left > 0) return;
      isBegun = false;
      if (!socket.destroyed && job.kind !== 'half-open') idle.push(socket);
    });
  };
  const startedMs = performance.now();
  const ticker = setInterval(() => {
    const [first, second] = [Math.min(due, OPEN_PER_TICK), Math.min(again, AGAIN_PER_TICK)];
    [due, again] = [due - first, again - second];
    for (let count = first + second; count > 0; count -= 1) open();
    const allowed = ((performance.now() - startedMs) / 1000) * job.perSecond;
    while (given < allowed && idle.length > 0) {
      const socket = idle.shift();
      if (socket === undefined || socket.destroyed || !socket.writable) continue;
      given += 1;
      asked += 1;
      socket.write(requests[asked % requests.length] ?? '');
    }
    // A request that couldn't be sent in time isn't sent later, so the rate never catches up.
    given = Math.max(given, allowed - job.perSecond);
  }, TICK_MS);
  await delay(job.seconds * 1000);
  clearInterval(ticker);
  const result = { seconds: (performance.now() - startedMs) / 1000, opened, open: sockets.size, statuses };
  for (const socket of sockets) socket.destroy();
  return result;
}

function requestsOf({ kind, url }: AttackJob): string[] {
  if (kind === 'half-open') return [];
  if (kind === 'openapi') return ['GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'];
  if (kind === 'sign-in') {
    const body = 'login=bench&password=one+that+is+wrong&code=123456';
    const head = `POST /sign-in HTTP/1.1\r\nHost: ${new URL(url).host}\r\nOrigin: ${url}\r\nSec-Fetch-Site: same-origin\r\n`;
    const type = 'Content-Type: application/x-www-form-urlencoded';
    return [`${head}${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`];
  }
  return Array.from({ length: KEYS }, () => {
    const key = formatApiKey('devnet', uuidV7(Date.now(), randomBytes(10)), randomBytes(32));
    return `GET /v1/invoices/none HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${key}\r\n\r\n`;
  });
}
