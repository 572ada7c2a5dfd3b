import { createHmac } from 'node:crypto';

export type WebhookRequest = { headers: Record<string, string | string[]>; body: string };

/** Signs a genuine delivery of an event at `seconds`. */
export function deliver(event: { id: string }, secret: string, seconds = now()): WebhookRequest {
  return signAll(event.id, String(seconds), JSON.stringify(event), secret);
}

/** Forged deliveries of a true event that no receiver may act on, by their defect. */
export function forge(event: { id: string }, secret: string): Record<string, WebhookRequest> {
  const genuine = deliver(event, secret);
  const { body } = genuine;
  const time = String(now());
  const right = String(genuine.headers['webhook-signature']);
  const other = String(deliver(event, OTHER_SECRET).headers['webhook-signature']);
  const header = (name: string, value: string | string[]) => ({ body, headers: { ...genuine.headers, [name]: value } });
  const without = (name: string) => ({
    body,
    headers: Object.fromEntries(Object.entries(genuine.headers).filter(([key]) => key !== name)),
  });
  return {
    'one changed byte': { ...genuine, body: body.replace('"sequence":', '"sequencf":') },
    'JSON written anew': { ...genuine, body: JSON.stringify(event, null, 1) },
    'a cut body': { ...genuine, body: body.slice(0, -1) },
    'an empty body': { ...genuine, body: '' },
    'more than 64 KiB, signed': signAll(event.id, time, `${body}${' '.repeat(65 * 1024)}`, secret),
    'another secret': deliver(event, OTHER_SECRET),
    'the text of the secret as the key': {
      body,
      headers: { ...genuine.headers, 'webhook-signature': `v1,${hmac(secret, `${event.id}.${time}.${body}`)}` },
    },
    'signed an hour ago': deliver(event, secret, now() - 3600),
    'signed for in an hour': deliver(event, secret, now() + 3600),
    'the time 1e9': signAll(event.id, '1e9', body, secret),
    'a time with an exponent that is now': signAll(event.id, `${Number(time) / 1e9}e9`, body, secret),
    'a time with a sign': signAll(event.id, `+${time}`, body, secret),
    'a time with a fraction': signAll(event.id, `${time}.0`, body, secret),
    'a time with a zero before': signAll(event.id, `0${time}`, body, secret),
    'a time with letters behind': signAll(event.id, `${time}s`, body, secret),
    'an id with a dot': signAll(`${event.id}.1`, time, body, secret),
    'an id of 256 characters': signAll('e'.repeat(256), time, body, secret),
    'an id that leads out of a folder': signAll('../../etc', time, body, secret),
    'another id': header('webhook-id', 'evt_other'),
    'the id twice': header('webhook-id', [event.id, event.id]),
    'the time twice': header('webhook-timestamp', [time, time]),
    'the signatures twice': header('webhook-signature', [right, right]),
    'the signatures twice, joined': header('webhook-signature', `${other}, ${right}`),
    'no id': without('webhook-id'),
    'no time': without('webhook-timestamp'),
    'no signature': without('webhook-signature'),
    'the right signature behind 16 others': header('webhook-signature', `${`${other} `.repeat(16)}${right}`),
    'a signature without its version': header('webhook-signature', right.slice(3)),
    'a signature of version 2': header('webhook-signature', right.replace('v1,', 'v2,')),
    'a cut signature': header('webhook-signature', right.slice(0, -4)),
    'a signature with more behind it': header('webhook-signature', `${right}AAAA`),
  };
}

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

function now(): number {
  return Math.floor(Date.now() / 1000);
}

/** Signs like a sender that checks nothing. */
function signAll(id: string, timestamp: string, body: string, secret: string): WebhookRequest {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = `v1,${hmac(key, `${id}.${timestamp}.${body}`)}`;
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return { headers: { 'content-type': 'application/json', ...headers }, body };
}

function hmac(key: Buffer | string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64');
}
