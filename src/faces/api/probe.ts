import { PassThrough } from 'node:stream';
import type { FastifyInstance } from 'fastify';
import {
  MADE_UP_CLIENT,
  PROBE_HEADER,
  PROBE_PATH,
  PROBE_PAUSE_MS,
  type ProbeAnswer,
  proveProbe,
  readProbe,
} from '../../core/domain/probe.ts';
import type { Sql } from '../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../core/store/db/ledger-identity.ts';
import { plainAddress, proxiesOf } from '../web/client-address.ts';
import { headerValues } from '../web/headers.ts';
import { STREAM_HEADERS } from '../web/live-streams.ts';
import { Problem } from '../web/problem.ts';

type Deps = { db: Sql; trustProxy: readonly string[] };

/**
 * `GET /probe` reports how a request arrives. `quittance doctor` uses it, and must first prove that it knows the ledger. For anyone else,
 * the route doesn't exist. It sends two events with a pause in between. If both arrive together, a proxy is buffering streams.
 */
export function registerProbe(app: FastifyInstance, { db, trustProxy }: Deps): void {
  const isProxy = proxiesOf(trustProxy);
  let ledgerId: string | null = null;
  app.get(PROBE_PATH, { schema: { hide: true } }, async (request, reply) => {
    const [asked = ''] = headerValues(request.raw, PROBE_HEADER);
    if (asked === '') throw notThere();
    ledgerId ??= (await findLedgerIdentity(db))?.id ?? null;
    const nonce = ledgerId === null ? null : readProbe(ledgerId, asked);
    if (ledgerId === null || nonce === null) throw notThere();
    const forwarded = headerValues(request.raw, 'x-forwarded-for').join(',').trim();
    const answer: ProbeAnswer = {
      proof: proveProbe(ledgerId, 'service', nonce),
      forwarded: forwarded === '' ? 'none' : forwarded === MADE_UP_CLIENT ? 'same' : 'other',
      isProxyTrusted: isProxy(plainAddress(request.raw.socket.remoteAddress ?? '') ?? ''),
    };
    const stream = new PassThrough();
    stream.write(`event: probe\ndata: ${JSON.stringify(answer)}\n\n`);
    const timer = setTimeout(() => stream.end('event: end\ndata: end\n\n'), PROBE_PAUSE_MS);
    request.raw.once('close', () => clearTimeout(timer));
    return reply.headers(STREAM_HEADERS).send(stream);
  });
}

/** The same response as for an unknown path. */
function notThere(): Problem {
  return new Problem('ROUTE_NOT_FOUND', `There is no GET ${PROBE_PATH}.`);
}
