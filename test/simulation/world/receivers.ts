import { createHmac } from 'node:crypto';
import { explainStatus, type SendResult, type WebhookSender } from '../../../src/core/webhooks/send.ts';
import type { Random } from '../engine/random.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import type { Received } from '../truth.ts';

/** How a receiver reacts to webhooks. */
const TEMPERS = [
  'well',
  'slow',
  'hangs',
  'acts-and-hangs',
  'refuses-connections',
  'fails',
  'acts-and-fails',
  'acts-and-breaks',
  'limits',
  'redirects',
  'refuses',
] as const;

type Temper = (typeof TEMPERS)[number];

export type Receiver = {
  endpointId: string;
  projectId: string;
  url: string;
  temper: Temper;
  /** The accepted secrets, newest first. */
  secrets: string[];
};

export type Receivers = ReturnType<typeof createReceivers>;

const TIMEOUT_MS = 15_000;
/** The tolerance that the documentation recommends to receivers. */
const TOLERANCE_MS = 5 * 60_000;

/** The shops' servers, each of which acts once on an event, and a sender that reaches them without sockets. */
export function createReceivers({ nowMs, random }: { nowMs(): number; random: Random }) {
  const receivers: Receiver[] = [];
  const received: Received[] = [];
  const acted = new Set<string>();
  const counts = { attempts: 0 };

  /** Receives a webhook; returns whether it's genuine and recent. */
  const receive = (receiver: Receiver, headers: Readonly<Record<string, string>>, body: Uint8Array): boolean => {
    const { endpointId, projectId, secrets } = receiver;
    const seconds = Number(headers['webhook-timestamp']);
    const isRecent = Math.abs(seconds * 1000 - nowMs()) <= TOLERANCE_MS;
    const isGenuine = secrets.some((secret) => isSignedWith(secret, headers, body));
    const key = `${endpointId} ${headers['webhook-id']}`;
    const action = !isRecent || !isGenuine ? 'refused' : acted.has(key) ? 'ignored-repetition' : 'acted';
    if (action === 'acted') acted.add(key);
    received.push({ endpointId, projectId, atMs: nowMs(), headers, body, secrets: [...secrets], action });
    return action !== 'refused';
  };
  const failed = (status: number | null, error: string, retryAfterMs: number | null = null): SendResult => ({
    kind: 'failed',
    status,
    error,
    retryAfterMs,
    latencyMs: 1,
    answer: null,
    date: null,
  });
  const exchange = async (
    process: SimulatedProcess,
    receiver: Receiver,
    { headers, body }: { headers: Readonly<Record<string, string>>; body: Uint8Array },
  ): Promise<SendResult> => {
    const { temper } = receiver;
    const take = () => receive(receiver, headers, body);
    if (temper === 'refuses-connections') return failed(null, 'connection_refused: nobody listens');
    if (temper === 'hangs' || temper === 'acts-and-hangs') {
      if (temper === 'acts-and-hangs') take();
      await process.arrive(TIMEOUT_MS);
      return failed(null, 'timeout: no response within 15 s');
    }
    if (temper === 'slow') await process.arrive(random.between(500, 14_000));
    if (temper === 'fails') return failed(500, explainStatus(500));
    if (temper === 'limits') return failed(429, explainStatus(429), random.pick([null, 5000, 60_000]));
    if (temper === 'redirects') return failed(302, explainStatus(302));
    if (temper === 'refuses') return failed(400, explainStatus(400));
    const isAccepted = take();
    await process.arrive(random.between(1, 200));
    if (temper === 'acts-and-fails') return failed(503, explainStatus(503));
    if (temper === 'acts-and-breaks') return failed(null, 'connection_reset: the connection broke');
    if (!isAccepted) return failed(401, explainStatus(401));
    return { kind: 'delivered', status: 204, latencyMs: 1, answer: new Uint8Array() };
  };
  return {
    receivers,
    received,
    counts,
    tempers: TEMPERS,
    /** Returns a process's sender. */
    senderOf: (process: SimulatedProcess): WebhookSender => {
      let isClosed = false;
      return {
        send: async ({ url, headers, body }) => {
          if (isClosed) return { kind: 'aborted' };
          counts.attempts += 1;
          await process.arrive(random.between(1, 300));
          const receiver = receivers.find((each) => each.url === url);
          if (receiver === undefined) return failed(404, explainStatus(404));
          const result = await exchange(process, receiver, { headers: { ...headers }, body });
          return isClosed ? { kind: 'aborted' } : result;
        },
        close: async () => {
          isClosed = true;
        },
      };
    },
  };
}

/** Verifies by the published format, with none of our code: HMAC-SHA256 of `id.timestamp.body`, as one of the listed signatures. */
function isSignedWith(secret: string, headers: Readonly<Record<string, string>>, body: Uint8Array): boolean {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const hmac = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`);
  const expected = `v1,${hmac.update(body).digest('base64')}`;
  return (headers['webhook-signature'] ?? '').split(' ').includes(expected);
}
