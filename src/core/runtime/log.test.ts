import { runInNewContext } from 'node:vm';
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

  // This is not a benchmark. Linear work ends within a fraction of a second. Quadratic work would need minutes, and times out.
  test.each([
    ['backslashes', '\\'],
    ['quotes and backslashes', '\\"'],
    ['names of secrets without values', '"apiKey":"'],
    ['names of secrets in a text that holds JSON', '\\"apiKey\\"'],
    ['white space after such a name', '\\"seed\\"'.padEnd(10_000)],
    ['connection strings without an end', 'postgres://u:'],
    ['the beginning of a key', 'qt_live_'],
    ['words that announce credentials', 'bearer '],
  ])('hostile lines of %s hold up nothing', (_, piece) => {
    const hostile = piece.repeat(Math.ceil(30_000 / piece.length));
    const write = () =>
      captured((log) => {
        for (let n = 0; n < 40; n++) log.warn(hostile);
      });
    const lines: string = runInNewContext('write()', { write }, { timeout: 20_000 });
    expect(lines.split('\n')).toHaveLength(41);
  });

  test('a secret that is far too long, and deep down, is not shown by the cut', () => {
    const seed = `"${CANARY} ${'\\'.repeat(40_000)}`;
    expect(captured((log) => log.warn({ a: { b: { c: { d: { seed } } } } }))).not.toContain(CANARY);
  });

  test('a line that is far too long is cut, still one of JSON with its level and time, and shows no secret at the cut', () => {
    const fill = 'x'.repeat(20_000);
    for (let length = 11_000; length < 13_000; length += 7) {
      const secrets = `${fill}${'y'.repeat(length)} postgres://u:${CANARY}@db Bearer ${CANARY} qt_live_${CANARY} ${fill.repeat(4)}`;
      const line = captured((log) => log.warn(secrets));
      expect(line).not.toContain(CANARY.slice(0, 4));
      expect(line.length).toBeLessThan(66_000);
      expect(JSON.parse(line)).toMatchObject({
        level: 'warn',
        time: expect.any(String),
        msg: expect.stringMatching(/^a line of \d+ characters was cut$/),
      });
    }
  });
});
