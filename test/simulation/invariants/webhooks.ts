import { Webhook } from 'standardwebhooks';
import { decodeId } from '../../../src/core/domain/ids.ts';
import type { Invariant, Received, Truth } from '../truth.ts';

/** The age in seconds at which receivers refuse, and how far a sender's clock may be off during faults. */
const FRESH_SECONDS = 300;
const SKEW_SECONDS = 3600;

const actsOnce: Invariant = {
  number: 13,
  title: 'a deduplicating receiver acts once',
  when: 'quiet',
  check: async ({ received }) => {
    const acted = new Map<string, number>();
    for (const each of received) {
      if (each.action !== 'acted') continue;
      // Identifies the event's content, not its id: a second id for the same event would make the receiver act twice.
      const name = `${each.endpointId} acted on ${saidId(each)}`;
      acted.set(name, (acted.get(name) ?? 0) + 1);
    }
    return [...acted].filter(([, times]) => times > 1).map(([name, times]) => `${name} ${times} times`);
  },
};

const verifies: Invariant = {
  number: 14,
  title: 'every delivery verifies, and its bytes never change',
  when: 'quiet',
  check: async (truth) => {
    const rows = await truth.query(
      `select e.id, e.body, md5(e.body) = s.body_md5 as is_as_written from events e left join witness.events s on s.event_id = e.id`,
    );
    const changed = rows
      .filter((row) => row['is_as_written'] !== true)
      .map((row) => `the body of event ${row['id']} was changed`);
    const bodies = new Map(rows.map((row) => [String(row['id']), Buffer.from(String(row['body']))]));
    return [...changed, ...truth.received.flatMap((each) => problemsOf(truth, each, bodies))];
  },
};

/** Checks received webhooks by the rules of Standard Webhooks, with a signing library that isn't ours. */
export const WEBHOOKS: readonly Invariant[] = [actsOnce, verifies];

function problemsOf(truth: Truth, received: Received, bodies: ReadonlyMap<string, Buffer>): string[] {
  const { headers, body, atMs, endpointId } = received;
  const id = headers['webhook-id'] ?? '';
  const seconds = Number(headers['webhook-timestamp']);
  const problem = (what: string) => `${id} to ${endpointId} at ${new Date(atMs).toISOString()}: ${what}`;
  const problems: string[] = [];
  if (saidId(received) !== id) problems.push(problem(`the body says ${saidId(received)}`));
  if (headers['webhook-protocol'] !== 'v2') problems.push(problem(`the protocol is ${headers['webhook-protocol']}`));
  const calmSinceMs = truth.calmSinceMs();
  const tolerance =
    FRESH_SECONDS + (calmSinceMs === null || atMs < calmSinceMs + FRESH_SECONDS * 1000 ? SKEW_SECONDS : 0);
  if (!(Math.abs(seconds - atMs / 1000) <= tolerance)) problems.push(problem(`the timestamp ${seconds} is not fresh`));
  if (!isSigned(received, id, seconds)) problems.push(problem('no signature verifies'));
  const written = bodies.get(decodeId('evt', id) ?? '');
  if (written === undefined) problems.push(problem('there is no such event'));
  else if (Buffer.compare(written, body) !== 0) problems.push(problem('the bytes are not those of the event'));
  return problems;
}

function isSigned({ headers, body, secrets }: Received, id: string, seconds: number): boolean {
  if (!Number.isSafeInteger(seconds)) return false;
  const signatures = (headers['webhook-signature'] ?? '').split(' ');
  const signedAt = new Date(seconds * 1000);
  return secrets.some((secret) => signatures.includes(signerOf(secret).sign(id, signedAt, Buffer.from(body))));
}

const signers = new Map<string, Webhook>();

function signerOf(secret: string): Webhook {
  const signer = signers.get(secret) ?? new Webhook(secret);
  signers.set(secret, signer);
  return signer;
}

function saidId({ body }: Received): string {
  const said: unknown = JSON.parse(Buffer.from(body).toString());
  return typeof said === 'object' && said !== null && 'id' in said ? String(said.id) : '';
}
