import { lookup as systemLookup } from 'node:dns';
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { encodeId } from '../domain/ids.ts';
import { explainError } from '../webhooks/explain-failure.ts';
import { checkAddresses } from '../webhooks/target.ts';
import { createCheckedLookup, type LookupAll } from '../webhooks/target-connector.ts';
import type { Attempt } from './attempt.ts';
import type { MailTarget } from './channel-target.ts';
import type { Message } from './message.ts';

type MailOptions = {
  /** Ends the attempt, whatever it waits for. */
  signal: AbortSignal;
  /** For tests. */
  lookup?: LookupAll;
  ca?: string;
};

/** Hands a message to the mail server, once. Never throws. A message that is sent again has the same Message-ID. */
export async function sendMail(target: MailTarget, message: Message, options: MailOptions): Promise<Attempt> {
  const { signal } = options;
  let socket: Socket | null = null;
  const end = () => socket?.destroy();
  signal.addEventListener('abort', end);
  try {
    signal.throwIfAborted();
    socket = await open(target, options);
    // It is large, and most processes never send a mail.
    const { createTransport } = await import('nodemailer');
    const transport = createTransport(transportOptions(target, socket, options));
    await transport.sendMail(mailOf(target, message));
    return { kind: 'sent' };
  } catch (error) {
    if (signal.aborted) return { kind: 'failed', error: TOO_SLOW, retryAfterMs: null };
    return { kind: 'failed', error: explainMailError(error), retryAfterMs: null };
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}

const TOO_SLOW = 'timeout: the mail server did not take the message in time';

/** Connects to addresses that the target may have, and to no others: nodemailer would look the name up again. */
async function open(
  { host, port, isOwnNetwork }: MailTarget,
  { signal, lookup = systemLookup }: MailOptions,
): Promise<Socket> {
  const rule = isOwnNetwork ? 'own' : 'public';
  const family = isIP(host);
  if (family !== 0) {
    const check = checkAddresses(host, [{ address: host, family }], rule);
    if (check.kind === 'refused') throw Object.assign(new Error(check.reason), { code: 'TARGET_REFUSED' });
  }
  const socket = connect({ host, port, lookup: createCheckedLookup({ rule, lookup }), signal });
  try {
    await once(socket, 'connect', { signal });
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/**
 * TLS is required and the certificate verified; but in the operator's own network a server without, or with one that it made itself, is
 * taken: whoever listens there would need no more.
 */
function transportOptions({ host, port, isTls, login, isOwnNetwork }: MailTarget, socket: Socket, { ca }: MailOptions) {
  const verified = isOwnNetwork ? { rejectUnauthorized: false } : {};
  return {
    ...{ host, port, secure: isTls, requireTLS: !isTls && !isOwnNetwork, connection: socket },
    tls: { ...verified, ...(ca === undefined ? {} : { ca }), ...(isIP(host) === 0 ? { servername: host } : {}) },
    ...(login === null ? {} : { auth: { user: login.user, pass: login.password } }),
    ...{ disableFileAccess: true, disableUrlAccess: true },
  };
}

function mailOf({ from, to }: MailTarget, { id, title, text, isUrgent }: Message) {
  return {
    ...{ from, to: [...to], subject: title, text },
    messageId: `<${encodeId('ntf', id)}@quittance.invalid>`,
    headers: { 'Auto-Submitted': 'auto-generated', ...(isUrgent ? { Importance: 'high' } : {}) },
  };
}

/** What the server answered is its code alone: the rest of the line may hold anything. */
function explainMailError(error: unknown): string {
  const { code, responseCode } = (error ?? {}) as { code?: unknown; responseCode?: unknown };
  if (typeof responseCode === 'number') {
    const why = code === 'EAUTH' ? ' (it refuses the user or the password)' : '';
    return `smtp_${responseCode}: the mail server answered ${responseCode}${why}`;
  }
  if (code === 'ETLS') return 'tls: no secure connection to the mail server';
  if (code === 'EAUTH') return 'smtp_login: the mail server takes no such login';
  return explainError(error);
}
