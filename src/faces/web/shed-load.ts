import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createTally, type Logger } from '../../core/runtime/log.ts';
import { beginAtZero, type Metrics } from '../../core/runtime/metrics.ts';
import { type Client, clientOf } from './client-address.ts';
import { singleHeader } from './headers.ts';
import { createLoadGate, type GateLimits, LINES, type QueueName, type Refusal } from './load-gate.ts';
import { type Problem, retryLater } from './problem.ts';
import { notesOf } from './request-notes.ts';

export type ShedLoadDeps = {
  /** How long events wait for the event loop, in milliseconds. */
  lagMs(): number;
  /** The fraction of the process's capacity that requests may use, from 0 to 1. */
  requestShare(): number;
  log: Logger;
  metrics: Pick<Metrics, 'requestsShed'>;
  limits: GateLimits;
  /** Returns a key that is known to be valid (UUIDs), using only memory. Without this function, all callers are strangers. */
  recognize?(apiKey: string, client: Client): { id: string; projectId: string } | null;
};

/** Load balancers request these, and need a response even under load. */
const NEVER_SHED = new Set(['/healthz', '/readyz']);
/** Paths that count as pages, in addition to those below `/c/`. */
const OF_PAGES = new Set([
  '/assets/checkout.js',
  '/assets/embed.js',
  '/logos/:id',
  '/.well-known/quittance-receipt-keys.json',
]);
/** The time is random, from 1 to this many seconds, so that clients that were refused together don't return together. */
const LONGEST_RETRY_S = 4;
/** If a client disconnects, it isn't counted as refused. */
const COUNTED: readonly Refusal[] = ['lag', 'full', 'late'];

/** `BEGUN` holds the queue of a request that is in progress, and `READING` the queue of a request whose body hasn't arrived yet. */
const BEGUN = Symbol('begun');
const READING = Symbol('reading');
/** Releases a started request's place. */
const END = Symbol('end');
/** Takes the place again. */
const RESUME = Symbol('resume');
type CountedRequest = FastifyRequest & {
  [BEGUN]?: QueueName;
  [READING]?: QueueName;
  [END]?: () => void;
  [RESUME]?: () => void;
};

/**
 * Responds to excess requests with `503 OVERLOADED`, before authentication and before a body is read. Register it before every other hook
 * that costs anything.
 */
export function shedLoad(app: FastifyInstance, { lagMs, requestShare, log, metrics, limits, recognize }: ShedLoadDeps) {
  const gate = createLoadGate({ lagMs, requestShare }, limits);
  beginAtZero(
    metrics.requestsShed,
    LINES.flatMap((line) => COUNTED.map((reason) => ({ line, reason }))),
  );
  const tally = createTally(() => performance.now());
  const logRefusal = (line: QueueName, client: string, why: Refusal) => {
    metrics.requestsShed.inc({ line, reason: why });
    const refused = tally.note('refused');
    if (refused !== null)
      log.warn({ line, client, why, refused, ...gate.load() }, 'the server is overloaded and refuses requests');
  };
  app.addHook('onRequest', (request: CountedRequest, reply, done) => {
    const { line, client } = placeOf(request, recognize);
    if (line === null) return done();
    gate.enter(line, {
      client,
      begin: () => {
        request[BEGUN] = line;
        request[END] = () => {
          delete request[BEGUN];
          gate.end(line);
        };
        request[RESUME] = () => {
          request[BEGUN] = line;
          gate.resume(line);
        };
        done();
      },
      refuse: (why, isHeld) => {
        if (COUNTED.includes(why)) logRefusal(line, client, why);
        // No more refusals can be held, so the client has to be slowed down by making it open a new connection.
        if (!isHeld) reply.header('Connection', 'close');
        done(overloaded());
      },
      isGone: () => request.raw.destroyed,
    });
  });
  // A body that arrives slowly causes no work, and a client that sends many of them must not take all places.
  app.addHook('preParsing', (request: CountedRequest, _reply, _payload, done) => {
    const line = request[BEGUN];
    if (line !== undefined && !request.raw.complete) {
      request[READING] = line;
      endPlace(request);
    }
    done();
  });
  app.addHook('preValidation', (request: CountedRequest, _reply, done) => {
    if (request[READING] !== undefined) request[RESUME]?.();
    done();
  });
  // Runs for every response that isn't hijacked, even if the client has disconnected.
  app.addHook('onSend', (request: CountedRequest, reply: FastifyReply, payload, done) => {
    const line = request[BEGUN];
    endPlace(request);
    // A client that exceeds a limit might retry immediately. A caller with a key needs the response immediately, and then waits for as long
    // as the response says.
    if (reply.statusCode !== 429 || line === undefined || line === 'api') return done(null, payload);
    gate.hold((isHeld) => {
      if (!isHeld) reply.header('Connection', 'close');
      done(null, payload);
    });
  });
}

/**
 * Takes a response out of the server's control, to use it for a stream. An open stream causes no work, so its request's place is released;
 * the server would never notice that the stream has ended.
 */
export function hijackForStream(request: FastifyRequest, reply: FastifyReply): void {
  reply.hijack();
  endPlace(request);
}

/** Releases a request's place while it waits for something else. */
export async function waitWithoutPlace<Result>(request: CountedRequest, wait: () => Promise<Result>): Promise<Result> {
  endPlace(request);
  const result = await wait();
  request[RESUME]?.();
  return result;
}

function endPlace(request: CountedRequest): void {
  if (request[BEGUN] !== undefined) request[END]?.();
}

/** Returns a request's queue, and its client in that queue. Turns are by key for callers with a key, and by network for all others. */
function placeOf(
  request: FastifyRequest,
  recognize: ShedLoadDeps['recognize'],
): { line: QueueName | null; client: string } {
  const line = lineOf(request.routeOptions.url);
  const from = clientOf(request);
  const { network } = from;
  if (line !== 'stranger') return { line, client: network };
  const apiKey = recognize && singleHeader(request, 'x-api-key');
  const key = (apiKey && recognize?.(apiKey, from)) || null;
  if (key === null) return { line, client: network };
  notesOf(request).key = key;
  return { line: 'api', client: key.id };
}

function lineOf(route: string | undefined): QueueName | null {
  if (route === undefined) return 'stranger';
  if (NEVER_SHED.has(route)) return null;
  if (route === '/c/:token/live') return 'live';
  return route.startsWith('/c/') || OF_PAGES.has(route) ? 'page' : 'stranger';
}

function overloaded(): Problem {
  const seconds = 1 + Math.floor(Math.random() * LONGEST_RETRY_S);
  const detail = `The server is overloaded. It rejected this request without processing it; retry in ${seconds} s.`;
  return retryLater('OVERLOADED', detail, seconds);
}
