import { describe, expect, test } from 'vitest';
import { createLogger } from './log.ts';

const CANARY = 'C4N4RYxyz0123456789';

function captured(write: (log: ReturnType<typeof createLogger>) => void): string {
  const lines: string[] = [];
  write(createLogger({ level: 'trace', destination: { write: (line: string) => void lines.push(line) } }));
  for (const line of lines) JSON.parse(line);
  return lines.join('');
}

describe('the log', () => {
  test('writes one JSON object per line, with the level by name and the time in ISO form', () => {
    const line = JSON.parse(captured((log) => log.info({ invoiceId: 'inv_1' }, 'invoice created')));
    expect(line).toMatchObject({ level: 'info', invoiceId: 'inv_1', msg: 'invoice created' });
    expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  test('keeps texts that are no secret', () => {
    const line = captured((log) =>
      log.info({ url: 'https://example.com/a?b=c', secretly: 'kept' }, 'basic auth, bearer of news'),
    );
    expect(line).toContain('https://example.com/a?b=c');
    expect(line).toContain('"secretly":"kept"');
    expect(line).toContain('basic auth, bearer of news');
  });

  test.each([
    ['a header', { req: { headers: { 'x-api-key': CANARY, authorization: `Bearer ${CANARY}` } } }],
    ['a header in another letter case', { headers: { 'X-API-Key': CANARY } }],
    ['an api key', { apiKey: CANARY }],
    ['a secret, deep down', { a: { b: { c: { d: { e: { secret: CANARY } } } } } }],
    ['a secret that holds a quote', { secret: `"${CANARY}"${CANARY}` }],
    ['a list of secrets', { project: { secrets: [CANARY] } }],
    ['a master key', { masterKey: CANARY }],
    ['the master keys of a configuration', { config: { masterKeys: [CANARY, CANARY] } }],
    ['an environment', { env: { QUITTANCE_MASTER_KEY: `${CANARY},${CANARY}` } }],
    ['a private key', { wallet: { privateKey: CANARY } }],
    ['a password', { connection: { password: CANARY } }],
    ['a connection string', { url: `postgres://quittance:${CANARY}@db:5432/quittance` }],
    ['a connection string whose password holds an @', { url: `postgres://quittance:x@${CANARY}@db:5432/quittance` }],
    ['a body that is JSON text', { body: JSON.stringify({ apiKey: CANARY, secret: CANARY }) }],
  ])('never shows %s', (_, object) => {
    expect(captured((log) => log.info(object, 'seen'))).not.toContain(CANARY);
  });

  test.each([
    ['a live key', `qt_live_${CANARY}`],
    ['a test key', `qt_test_${CANARY}`],
    ['a webhook secret', `whsec_${CANARY}+/==`],
    ['a master key', `QUITTANCE_MASTER_KEY=${CANARY}+/=,${CANARY}= quittance start`],
    ['a connection string', `connect to postgresql://u:${CANARY}@localhost/x failed`],
    ['a keyword connection string', `host=/tmp password=${CANARY} user=x`],
    ['an authorization', `Authorization: Bearer ${CANARY}`],
  ])('never shows %s in a message, an error, its cause or an error under another name', (_, text) => {
    const error = new Error(text, { cause: new Error(text) });
    const line = captured((log) => {
      log.warn(text);
      log.warn('with %s', text);
      log.error({ err: error }, 'failed');
      log.error({ error }, 'failed');
      log.error(error);
      log.child({ context: text }).info('child');
    });
    expect(line).not.toContain(CANARY);
    expect(line.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(6);
  });
});
