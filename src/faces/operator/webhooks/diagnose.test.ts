import { createHash, createHmac, randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';

import { createWebhookSecret, parseSecret } from '../../../core/webhooks/sign.ts';
import { type DiagnosedAttempt, diagnoseAttempt } from './diagnose.ts';

const NOW = unixMs(1_790_000_000_000);
const BODY = Buffer.from(
  '{"id":"evt_01","type":"invoice.paid","data":{"checkoutUrl":"https://pay.example/c/1?a&b","externalId":"Döner"}}',
);
const [current, former, foreign] = Array.from({ length: 3 }, () => createWebhookSecret(randomBytes));

function attempt(change: Partial<DiagnosedAttempt>): DiagnosedAttempt {
  return {
    status: null,
    error: null,
    answer: null,
    date: null,
    attemptedAt: NOW,
    latencyMs: 100,
    sent: { id: 'evt_01', body: BODY },
    secrets: [
      { secret: current ?? '', endsAt: null },
      { secret: former ?? '', endsAt: unixMs(NOW - 1000) },
    ],
    ...change,
  };
}

const codesOf = (change: Partial<DiagnosedAttempt>) => diagnoseAttempt(attempt(change)).map(({ code }) => code);

test('a delivered attempt has no diagnosis', () => {
  expect(codesOf({ status: 204 })).toEqual([]);
});

test('a shop that answers 200 without the word of its system has not taken a callback', () => {
  expect(codesOf({ status: 200, error: 'not_acknowledged: no word' })).toEqual(['not-acknowledged']);
});

test.each([
  ['tls: no secure connection; check the certificate and its chain (CERT_HAS_EXPIRED)', 'certificate-expired'],
  ['tls: no secure connection (DEPTH_ZERO_SELF_SIGNED_CERT)', 'certificate-self-signed'],
  ['tls: no secure connection (SELF_SIGNED_CERT_IN_CHAIN)', 'certificate-self-signed'],
  ['tls: no secure connection (ERR_TLS_CERT_ALTNAME_INVALID)', 'certificate-wrong-name'],
  ['tls: no secure connection (UNABLE_TO_VERIFY_LEAF_SIGNATURE)', 'certificate-chain'],
  ['tls: no secure connection (UNABLE_TO_GET_ISSUER_CERT_LOCALLY)', 'certificate-chain'],
  ['tls: no secure connection (ERR_SSL_WRONG_VERSION_NUMBER)', 'not-tls'],
  ['tls: no secure connection (ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION)', 'tls'],
  ['dns: the endpoint host name does not resolve (ENOTFOUND)', 'dns'],
  ["connection_refused: nothing is listening at the endpoint's address (ECONNREFUSED)", 'refused'],
  ['timeout: no connection within 10 s (UND_ERR_CONNECT_TIMEOUT)', 'connect-timeout'],
  ['timeout: no response within 15 s', 'answer-timeout'],
  ['connection_lost: the connection was closed before a response arrived (UND_ERR_SOCKET)', 'connection-lost'],
  ['unreachable: no route to the endpoint (EHOSTUNREACH)', 'unreachable'],
  ['invalid_answer: the response is not valid HTTP (HPE_INVALID_CONSTANT)', 'invalid-answer'],
  ['unsigned: the secret of the endpoint is malformed', 'unsigned'],
  ['network: the attempt failed (ENOBUFS)', 'network'],
])('%s is told as %s', (error, code) => {
  const [diagnosis, ...others] = diagnoseAttempt(attempt({ error }));
  expect(diagnosis).toMatchObject({ code, problem: expect.stringMatching(/\w/) });
  expect(String(diagnosis?.fix)).toMatch(/\w/);
  expect(others).toEqual([]);
});

test('a target that is refused is told with its reason', () => {
  const error = 'target_refused: "169.254.169.254" is not allowed (cloud metadata): only public addresses are allowed';
  const [diagnosis] = diagnoseAttempt(attempt({ error }));
  expect(diagnosis).toMatchObject({
    code: 'target-refused',
    problem: '"169.254.169.254" is not allowed (cloud metadata): only public addresses are allowed',
  });
});

test.each([
  [301, 'redirect'],
  [308, 'redirect'],
  [400, 'refused-by-receiver'],
  [401, 'unauthorized'],
  [403, 'unauthorized'],
  [404, 'not-found'],
  [405, 'method-not-allowed'],
  [410, 'gone'],
  [413, 'too-large'],
  [429, 'rate-limited'],
  [418, 'status'],
  [500, 'server-error'],
  [502, 'application-down'],
  [503, 'application-down'],
  [504, 'timeout-behind-proxy'],
  [599, 'server-error'],
])('status %i is told as %s, with the status', (status, code) => {
  const [diagnosis] = diagnoseAttempt(attempt({ status, error: `http_${status}: only 2xx counts as delivered` }));
  expect(diagnosis).toMatchObject({
    code,
    certainty: 'likely',
    problem: expect.stringContaining(`returned ${status}`),
  });
});

describe('the Date header', () => {
  const dateOf = (offsetSeconds: number) => new Date(NOW + offsetSeconds * 1000).toUTCString();

  test('tells of a clock that is off, first where verification may have refused', () => {
    expect(codesOf({ status: 401, date: dateOf(-400) })).toEqual(['clock', 'unauthorized']);
    expect(codesOf({ status: 500, date: dateOf(900) })).toEqual(['server-error', 'clock']);
    expect(diagnoseAttempt(attempt({ status: 400, date: dateOf(400) }))[0]).toMatchObject({
      certainty: 'likely',
      problem: expect.stringContaining('400 s ahead'),
    });
  });

  test('tells nothing when the clocks agree or it is no date', () => {
    for (const date of [dateOf(-200), dateOf(200), 'yesterday', 'Fri, 99 Foo 2026 GMT', '']) {
      expect(codesOf({ status: 400, date })).toEqual(['refused-by-receiver']);
    }
  });
});

describe("the SDK's diagnostic answer", () => {
  const sha256 = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
  const check = (secret = '') => {
    const hmac = createHmac('sha256', parseSecret(secret)).update('quittance diagnostic v1\nevt_01');
    return hmac.digest('hex').slice(0, 8);
  };
  const right = {
    receivedAt: NOW / 1000,
    bodySha256: sha256(BODY) as string | null,
    bodyBytes: BODY.length as number | null,
    secretCheck: check(current) as string | null,
  };
  const reported = (
    diagnosis: Partial<typeof right>,
    code = 'SIGNATURE_MISMATCH',
    change: Partial<DiagnosedAttempt> = {},
  ) => {
    const answer = { error: 'webhook_verification_failed', code, message: 'no', diagnosis: { ...right, ...diagnosis } };
    return diagnoseAttempt(attempt({ status: 400, answer: Buffer.from(JSON.stringify(answer)), ...change }));
  };

  test('proves a wrong secret, also among several', () => {
    for (const secretCheck of [check(foreign), `${check(foreign)},00000000`]) {
      expect(reported({ secretCheck })).toMatchObject([{ code: 'wrong-secret', certainty: 'proven' }]);
    }
    expect(reported({ secretCheck: `${check(foreign)},${check(current)}` })).toMatchObject([{ code: 'signature' }]);
  });

  test('knows the secret that has ended, and when', () => {
    const [diagnosis] = reported({ secretCheck: check(former) });
    expect(diagnosis).toMatchObject({
      code: 'secret-ended',
      problem: expect.stringContaining('2026-09-21T14:13:19.000Z'),
    });
  });

  test('without the secrets here it says that they cannot be compared', () => {
    const [diagnosis] = reported({ secretCheck: check(foreign) }, 'SIGNATURE_MISMATCH', { secrets: null });
    expect(diagnosis).toMatchObject({ code: 'signature', fix: expect.stringContaining('QUITTANCE_MASTER_KEY') });
  });

  const value = JSON.parse(BODY.toString());
  const ascii = (json: string) => json.replaceAll('ö', '\\u00f6');
  test.each([
    ['indented by two spaces', JSON.stringify(value, null, 2)],
    ['indented by four spaces', `${JSON.stringify(value, null, 4)}\n`],
    [
      'json.dumps',
      ascii(
        '{"id": "evt_01", "type": "invoice.paid", "data": {"checkoutUrl": "https://pay.example/c/1?a&b", "externalId": "Döner"}}',
      ),
    ],
    ['json_encode', ascii(JSON.stringify(value)).replaceAll('/', '\\/')],
    [
      'its keys sorted, with <, > and & as \\u…, as Go does, with a trailing line feed',
      '{"data":{"checkoutUrl":"https://pay.example/c/1?a\\u0026b","externalId":"Döner"},"id":"evt_01","type":"invoice.paid"}\n',
    ],
    ['Latin-1', BODY.toString('latin1')],
  ])('proves a body that was parsed and written again: %s', (how, written) => {
    const bodyBytes = Buffer.byteLength(written);
    expect(reported({ bodySha256: sha256(written), bodyBytes })).toMatchObject([
      { code: 'body-reserialised', certainty: 'proven', problem: expect.stringContaining(how) },
    ]);
  });

  test('proves an empty body, another body, and one that was not raw', () => {
    expect(reported({ bodySha256: sha256(''), bodyBytes: 0 })).toMatchObject([{ code: 'body-empty' }]);
    expect(reported({ bodySha256: sha256('{}'), bodyBytes: 2 })).toMatchObject([
      { code: 'body-changed', problem: expect.stringContaining(`${BODY.length} bytes were sent, 2 received`) },
    ]);
    expect(reported({ bodySha256: null, bodyBytes: null }, 'BODY_NOT_RAW')).toMatchObject([{ code: 'body-not-raw' }]);
  });

  test('proves a clock that is off, whatever of the attempt took long', () => {
    const [behind] = reported({ receivedAt: NOW / 1000 - 400 }, 'TIMESTAMP_TOO_NEW');
    expect(behind).toMatchObject({
      code: 'clock',
      certainty: 'proven',
      problem: expect.stringMatching(/ (399|400) s behind/),
    });
    const [ahead] = reported({ receivedAt: NOW / 1000 + 410 }, 'TIMESTAMP_TOO_OLD', { latencyMs: 10_000 });
    expect(ahead).toMatchObject({ code: 'clock', problem: expect.stringContaining('400 s ahead') });
    expect(reported({ receivedAt: NOW / 1000 + 200 }, 'TIMESTAMP_TOO_OLD')).toMatchObject([{ code: 'tolerance' }]);
  });

  test('tells several things at once', () => {
    const all = reported({ secretCheck: check(foreign), bodySha256: sha256('{}'), bodyBytes: 2, receivedAt: 1 });
    expect(all.map(({ code }) => code)).toEqual(['body-changed', 'wrong-secret', 'clock']);
  });

  test('tells of headers that did not arrive, a body that grew, and an event that was not understood', () => {
    expect(reported({}, 'HEADER_MISSING')).toMatchObject([{ code: 'headers-changed' }]);
    const unread = { bodySha256: null, bodyBytes: null, secretCheck: null };
    expect(reported(unread, 'BODY_TOO_LARGE')).toMatchObject([{ code: 'body-too-large' }]);
    expect(reported({}, 'EVENT_MALFORMED')).toMatchObject([{ code: 'event-not-understood' }]);
  });

  test('an answer that only looks like it is taken for what its status says, and nothing of it is repeated', () => {
    for (const answer of ['{"error":"webhook_verification_failed"}', '[]', 'null', '{"error":', '\u0000']) {
      expect(codesOf({ status: 400, answer: Buffer.from(answer) })).toEqual(['refused-by-receiver']);
    }
    const hostile = JSON.stringify({
      error: 'webhook_verification_failed',
      code: '\u001b[2J',
      diagnosis: { receivedAt: 'x', bodySha256: [], bodyBytes: -1, secretCheck: { a: '\u001b[2J' } },
    });
    const reported = diagnoseAttempt(attempt({ status: 400, answer: Buffer.from(hostile) }));
    expect(reported).toMatchObject([{ code: 'signature' }]);
    expect(JSON.stringify(reported)).not.toContain('[2J');
  });
});
