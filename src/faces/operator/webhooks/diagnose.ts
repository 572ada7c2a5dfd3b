import { createHash, createHmac } from 'node:crypto';
import { say, type Text } from '../../../core/domain/message.ts';
import { toIso, type UnixMs } from '../../../core/domain/time.ts';
import { asObject, parseObject } from '../../../core/runtime/parse-object.ts';
import type { SigningSecret } from '../../../core/webhooks/endpoint-secrets.ts';
import { quotePage } from '../../../core/webhooks/redact.ts';
import { parseSecret } from '../../../core/webhooks/sign.ts';

/** An attempt in the form in which it's made and recorded. */
export type DiagnosedAttempt = {
  /** The HTTP status; `null` without a response. */
  status: number | null;
  /** The failure: a class, a colon, plain words, and a code in parentheses at the end. `null` if it was delivered. */
  error: string | null;
  /** The first bytes of the response body, at most 8 KiB. */
  answer: Uint8Array | null;
  /** The response's Date header. It isn't stored, so it's known only for an attempt that was made just now. */
  date: string | null;
  attemptedAt: UnixMs;
  latencyMs: number | null;
  sent: SentWebhook;
  /** The secrets (`whsec_…`), including those that ended recently. `null` if they couldn't be decrypted. */
  secrets: readonly SigningSecret[] | null;
};

/** `id` is the `evt_…` of the header. */
type SentWebhook = { id: string; body: Uint8Array };

/**
 * A receiver's fault and its fix, in plain words without any text from the receiver. `proven` follows from what the receiver reports it
 * saw; `likely` is the usual cause of such an outcome. `code` is for scripts.
 */
type Diagnosis = { code: string; certainty: 'proven' | 'likely'; problem: string; fix: Text };

/** Explains why an attempt failed, most telling first, because several things may be wrong at once. Empty if it was delivered. */
export function diagnoseAttempt(attempt: DiagnosedAttempt): Diagnosis[] {
  const { status, error } = attempt;
  if (status === null) return error === null ? [] : [diagnoseConnection(error)];
  // For an adapter, a 2xx status alone isn't enough: the shop must also answer with the expected word.
  if (status >= 200 && status < 300) return error === null ? [] : [diagnoseConnection(error)];
  const diagnostic = readDiagnosticAnswer(attempt.answer);
  if (diagnostic !== null) return diagnoseVerification(attempt, diagnostic);
  const clock = clockFromHeader(attempt);
  const byStatus = diagnoseStatus(status);
  // Verification fails with one of these statuses. With any other status, the clock is worth mentioning, but isn't the cause.
  return [400, 401, 403].includes(status) ? [...clock, byStatus] : [byStatus, ...clock];
}

/** Diagnoses a delivery that succeeded, but was answered by a web page instead of the receiver. */
export function diagnosePage(answer: string | null): Diagnosis[] {
  return quotePage(answer) === null ? [] : [diagnoseConnection('web_page')];
}

/**
 * Receivers refuse webhooks whose time differs from their own clock by more than 5 minutes. The header may come from a server in front of
 * the receiver, so this diagnosis is likely but not certain.
 */
function clockFromHeader({ date, attemptedAt, latencyMs }: DiagnosedAttempt): Diagnosis[] {
  const time = date === null || !/^\w{3}, [ -~]{1,40} GMT$/.test(date) ? Number.NaN : Date.parse(date);
  if (Number.isNaN(time)) return [];
  const diagnosis = clockDiagnosis(time / 1000, { attemptedAt, latencyMs });
  return diagnosis === null ? [] : [{ ...diagnosis, certainty: 'likely' }];
}

function diagnoseStatus(status: number): Diagnosis {
  if (status >= 300 && status < 400) {
    return likely(
      'redirect',
      `the endpoint returned ${status}, a redirect, which webhooks do not follow`,
      'register the URL that the redirect points to. Often, it differs only in https://, "www" or a trailing slash. If it is a login page, exempt the route from login',
    );
  }
  const known = STATUSES.find(({ statuses }) => statuses.includes(status));
  if (known !== undefined) return likely(known.code, `the endpoint returned ${status}: ${known.problem}`, known.fix);
  if (status >= 500) {
    return likely(
      'server-error',
      `the endpoint returned ${status}: the application failed while it handled the webhook`,
      "check the application's log at the time of the attempt; often the code that handles this event has an error. The application should store the event, return 200, and process the event afterwards",
    );
  }
  return likely(
    'status',
    `the endpoint returned ${status}, but only 2xx counts as delivered`,
    "check the start of the response and the application's log at the time of the attempt",
  );
}

type KnownStatus = { statuses: readonly number[]; code: string; problem: string; fix: Text };

const STATUSES: readonly KnownStatus[] = [
  {
    ...{ statuses: [400, 422], code: 'refused-by-receiver' },
    problem: 'the application refused the webhook, perhaps because it could not verify the signature',
    fix: say`verify webhooks with the middleware from @quittance/sdk; then "${{ command: 'webhook test' }}" proves whether the secret, the body or the clock is wrong`,
  },
  {
    ...{ statuses: [401, 403, 407, 419], code: 'unauthorized' },
    problem: 'the route, or a proxy in front of it, requires authentication',
    fix: "webhooks have a signature, which proves the sender, but no cookies or API keys. Exempt the route from login and CSRF protection, and from basic authentication and the proxy's firewall rules. Some applications also return this status when they cannot verify the signature",
  },
  {
    ...{ statuses: [404], code: 'not-found' },
    problem: "the server has no route at the URL's path",
    fix: say`compare the URL's path with the application's route, and check that the deployed version has this route. To change the URL, run "${{ command: 'webhook update' }}"`,
  },
  {
    ...{ statuses: [405], code: 'method-not-allowed' },
    problem: "the route at the URL's path does not accept POST",
    fix: 'make the route accept POST, or register the URL of a route that does',
  },
  {
    ...{ statuses: [408, 504], code: 'timeout-behind-proxy' },
    problem: 'a proxy in front of the application timed out',
    fix: 'make the application store the event, return 200, and process the event afterwards',
  },
  {
    ...{ statuses: [410], code: 'gone' },
    problem:
      '410 means that the endpoint is permanently gone. This response to a delivery disables the endpoint; this response to a test does not',
    fix: say`return 410 only to disable the endpoint; to enable it again: "${{ command: 'webhook enable' }}"`,
  },
  {
    ...{ statuses: [413], code: 'too-large' },
    problem: 'the application or its proxy does not accept a body of this size',
    fix: "allow bodies of at least 20 kB on this route (client_max_body_size in nginx, the body parser's limit)",
  },
  {
    ...{ statuses: [415], code: 'media-type' },
    problem: 'the application does not accept application/json on this route',
    fix: 'make the route accept application/json, as raw bytes',
  },
  {
    ...{ statuses: [429], code: 'rate-limited' },
    problem: 'a rate limit of the application or its proxy refused the webhook',
    fix: 'exempt the route from the rate limit: several webhooks may arrive at once, and more after an outage',
  },
  {
    ...{ statuses: [502, 503], code: 'application-down' },
    problem: 'a proxy cannot reach the application, or the application is starting or overloaded',
    fix: 'check that the application is running, and that it listens on the address and port that the proxy uses',
  },
];

function likely(code: string, problem: string, fix: Text): Diagnosis {
  return { code, certainty: 'likely', problem, fix };
}

/**
 * Diagnoses an attempt without a status, or with a status that doesn't explain it. `error` is as recorded: `tls: no secure connection
 * (CERT_HAS_EXPIRED)`.
 */
function diagnoseConnection(error: string): Diagnosis {
  const kind = error.split(':', 1)[0] ?? '';
  const code = /\(([A-Za-z0-9_]{1,60})\)$/.exec(error)?.[1] ?? '';
  const found = CONNECTIONS.find((each) => each.codes?.test(code) || each.kinds?.includes(kind));
  const words = error.slice(kind.length + 1).trim();
  if (found === undefined) return { ...UNKNOWN, problem: `the attempt failed: ${words || error}` };
  const problem = found.code === 'target-refused' && words !== '' ? words : found.problem;
  // An error from OpenSSL or the resolver follows from the receiver's own answers, so it can be proven. Other errors may have a cause on
  // the network path.
  return { code: found.code, certainty: found.isProven ? 'proven' : 'likely', problem, fix: found.fix };
}

type KnownConnection = {
  code: string;
  codes?: RegExp;
  kinds?: readonly string[];
  isProven?: boolean;
  problem: string;
  fix: Text;
};

const UNKNOWN: Diagnosis = {
  code: 'network',
  certainty: 'likely',
  problem: '',
  fix: 'try the URL with curl from the machine that Quittance runs on',
};

/** Codes are more precise than kinds, so entries with codes come first. */
const CONNECTIONS: readonly KnownConnection[] = [
  {
    ...{ code: 'certificate-expired', codes: /^CERT_HAS_EXPIRED$/, isProven: true },
    problem: "the endpoint's TLS certificate has expired",
    fix: 'renew the certificate, and reload the web server so that it uses the new certificate',
  },
  {
    ...{ code: 'certificate-not-yet-valid', codes: /^CERT_NOT_YET_VALID$/, isProven: true },
    problem: "the endpoint's TLS certificate is not valid yet",
    fix: "check this machine's clock, and the certificate's start date",
  },
  {
    ...{
      code: 'certificate-self-signed',
      codes: /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/,
      isProven: true,
    },
    problem:
      "the endpoint's TLS certificate is self-signed, or signed by a private authority that is not publicly trusted",
    fix: "install a certificate from a public authority (for example Let's Encrypt, which is free)",
  },
  {
    ...{ code: 'certificate-wrong-name', codes: /^(ERR_TLS_CERT_ALTNAME_INVALID|HOSTNAME_MISMATCH)$/, isProven: true },
    problem: "the endpoint's TLS certificate is for another host name",
    fix: "install a certificate for the URL's host name, or register the URL with the certificate's host name. Often the web server uses its default certificate because no site is configured for this name",
  },
  {
    ...{
      code: 'certificate-chain',
      codes: /^UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(_LOCALLY)?)$/,
      isProven: true,
    },
    problem:
      'the endpoint does not send the intermediate certificates, so Quittance cannot trace its certificate to a trusted authority (browsers hide this problem, because they cache intermediate certificates)',
    fix: 'configure the web server with the full chain (fullchain.pem instead of cert.pem)',
  },
  {
    ...{
      code: 'not-tls',
      codes: /^(EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|ERR_SSL_HTTP_REQUEST)$/,
    },
    problem: 'the server on this port does not speak TLS correctly; perhaps it speaks plain HTTP',
    fix: 'register the URL with the port that serves https://',
  },
  {
    ...{ code: 'connect-timeout', codes: /^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/ },
    problem: 'the connection timed out: a firewall or router probably drops the packets',
    fix: "open the port in the firewall (and the security group) for this machine's address, and check that the name resolves to the right address",
  },
  {
    ...{ code: 'tls', kinds: ['tls'] },
    problem: 'Quittance could not establish a secure connection',
    fix: 'check the certificate, its chain and the TLS versions that the web server allows (1.2 or 1.3 is required)',
  },
  {
    ...{ code: 'dns', kinds: ['dns'], isProven: true },
    problem: "the URL's host name does not resolve to an address",
    fix: 'correct the host name, or publish its A or AAAA record; a new record can take minutes to become visible',
  },
  {
    ...{ code: 'refused', kinds: ['connection_refused'], isProven: true },
    problem: "nothing is listening at the URL's address and port, or a firewall refuses the connection",
    fix: 'start the application, check the port in the URL, and make sure that the application does not listen only on its loopback interface',
  },
  {
    ...{ code: 'answer-timeout', kinds: ['timeout'] },
    problem: 'the endpoint accepted the connection but did not respond in time',
    fix: 'make the application store the event, return 200 immediately, and process the event afterwards',
  },
  {
    ...{ code: 'not-acknowledged', kinds: ['not_acknowledged'], isProven: true },
    problem: 'the shop responded, but not with ok or success, so it did not acknowledge the payment',
    fix: 'check the start of the response: often the plugin has a different secret than the adapter, does not know the order, or prints other text before ok or success',
  },
  {
    ...{ code: 'web-page', kinds: ['web_page'] },
    problem:
      'the endpoint returned a web page, such as a login page or a firewall challenge: your receiver probably never saw the webhook',
    fix: 'exempt the route from login and from challenges from the proxy or firewall, or correct the URL. If your receiver itself sends this page, make it return 204 without a body',
  },
  {
    ...{ code: 'connection-lost', kinds: ['connection_lost'] },
    problem: 'the endpoint closed the connection before it responded',
    fix: 'check whether the application crashed or restarted at that time, and whether a proxy or firewall closes connections',
  },
  {
    ...{ code: 'unreachable', kinds: ['unreachable'] },
    problem: "there is no route to the endpoint's address",
    fix: 'check that the name resolves to the right address, and that this machine can reach it',
  },
  {
    ...{ code: 'target-refused', kinds: ['target_refused', 'invalid_url'], isProven: true },
    problem: 'Quittance does not send webhooks to this target',
    fix: 'register an https:// URL with a public address. Projects on test networks can also use addresses of this machine if QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow is set',
  },
  {
    ...{ code: 'invalid-answer', kinds: ['invalid_answer'] },
    problem: 'the response is not valid HTTP',
    fix: 'check that a web server listens on the port in the URL, and that no proxy changes its responses',
  },
  {
    ...{ code: 'unsigned', kinds: ['unsigned'], isProven: true },
    problem: "Quittance could not sign the webhook, because it cannot decrypt one of the endpoint's secrets",
    fix: say`set QUITTANCE_MASTER_KEY to the service's key; if that key is permanently lost, create a new secret for the endpoint with "${{ command: 'webhook rotate', input: { isKeyLost: true } }}"`,
  },
];

/**
 * The SDK middleware's response to a webhook that it couldn't verify. Real example:
 * `{"error":"webhook_verification_failed","code":"SIGNATURE_MISMATCH","message":"…","diagnosis":{"receivedAt":1790000000,
 * "bodySha256":"9f86…","bodyBytes":512,"secretCheck":"0a1b2c3d"}}`. Values that the middleware doesn't know are `null`.
 */
type DiagnosticAnswer = NonNullable<ReturnType<typeof readDiagnosticAnswer>>;

/** Reads a diagnostic response, which anyone could have written. Returns `null` if the bytes aren't one. */
function readDiagnosticAnswer(answer: Uint8Array | null) {
  if (answer === null) return null;
  const root = parseObject(new TextDecoder().decode(answer));
  if (root['error'] !== 'webhook_verification_failed' || typeof root['code'] !== 'string') return null;
  const { receivedAt, bodySha256, bodyBytes, secretCheck } = asObject(root['diagnosis']);
  const matching = (value: unknown, form: RegExp) => (typeof value === 'string' && form.test(value) ? value : null);
  return {
    code: matching(root['code'], /^[A-Z_]{1,40}$/) ?? 'UNKNOWN',
    receivedAt: readCount(receivedAt),
    bodySha256: matching(bodySha256, /^[0-9a-f]{64}$/),
    bodyBytes: readCount(bodyBytes),
    /** The check value for each secret that the receiver has. */
    secretChecks: matching(secretCheck, /^[0-9a-f]{8}(,[0-9a-f]{8}){0,15}$/)?.split(',') ?? null,
  };
}

/** Compares what the receiver saw with what was sent, and reports every difference, at least one. */
function diagnoseVerification(attempt: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis[] {
  const clock = answer.receivedAt === null ? null : clockDiagnosis(answer.receivedAt, attempt);
  const found = [bodyDiagnosis(attempt, answer), secretDiagnosis(attempt, answer), clock].filter(
    (each) => each !== null,
  );
  return found.length > 0 ? found : [otherDiagnosis(attempt, answer)];
}

/** Below this difference, no receiver with the usual tolerance of 300 s refuses a webhook, even if a Date header is a second old. */
const CLOCK_LIMIT_SECONDS = 240;

/** Checks the receiver's clock against the time of the attempt. Returns `null` if it's right. */
function clockDiagnosis(
  shownSeconds: number,
  { attemptedAt, latencyMs }: Pick<DiagnosedAttempt, 'attemptedAt' | 'latencyMs'>,
): Diagnosis | null {
  const begun = attemptedAt / 1000;
  const ended = begun + (latencyMs ?? 0) / 1000;
  // The clock was read at some moment during the attempt, so only this smallest difference is certain.
  const offset = shownSeconds > ended ? shownSeconds - ended : Math.min(0, shownSeconds + 1 - begun);
  const seconds = Math.round(Math.abs(offset));
  if (seconds < CLOCK_LIMIT_SECONDS) return null;
  return proven(
    'clock',
    `the receiver's clock is ${seconds} s ${offset > 0 ? 'ahead of' : 'behind'} this machine's clock; receivers reject differences of more than 300 s`,
    'synchronise both machines with NTP ("timedatectl" shows the status), and correct the wrong clock',
  );
}

function bodyDiagnosis({ sent }: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis | null {
  const { bodySha256, bodyBytes, code } = answer;
  if (code === 'BODY_NOT_RAW' || (bodySha256 === null && code === 'SIGNATURE_MISMATCH')) {
    return proven(
      'body-not-raw',
      'the application verifies a body that was already parsed, but the signature covers the raw bytes',
      'verify the signature before the body parser runs, or give the route the raw body: use express.raw({ type: "application/json" }), or the middleware from @quittance/sdk for Express, Fastify, Hono or Next.js',
    );
  }
  if (bodySha256 === null || bodySha256 === createHash('sha256').update(sent.body).digest('hex')) return null;
  const how = recogniseRewriting(sent.body, bodySha256);
  const sizes = bodyBytes === null ? '' : ` (${sent.body.length} bytes were sent, ${bodyBytes} received)`;
  if (bodyBytes === 0) {
    return proven(
      'body-empty',
      `the application verifies an empty body${sizes}: other code had already read the body`,
      'verify the raw bytes before other code reads the body',
    );
  }
  if (how !== null) {
    return proven(
      'body-reserialised',
      `the application verifies a body that was parsed and serialized again, ${how}${sizes}`,
      'verify the raw bytes of the request before parsing them, and never verify JSON that was serialized again',
    );
  }
  return proven(
    'body-changed',
    `the application verifies a different body than Quittance sent${sizes}: the body was parsed and serialized again, cut off, or changed on the way`,
    'verify the raw bytes of the request before parsing them. If you already do, look for a proxy that changes or cuts off bodies',
  );
}

function secretDiagnosis({ sent, secrets, attemptedAt }: DiagnosedAttempt, answer: DiagnosticAnswer): Diagnosis | null {
  const { secretChecks } = answer;
  if (secretChecks === null || secrets === null || secrets.length === 0) return null;
  const known = secrets.filter(({ secret }) => secretChecks.includes(checkOf(secret, sent.id)));
  if (known.some(({ endsAt }) => endsAt === null || endsAt > attemptedAt)) return null;
  const ended = known[0]?.endsAt;
  if (ended !== undefined && ended !== null) {
    return proven(
      'secret-ended',
      `the receiver still has the previous secret of this endpoint, which was valid until ${toIso(ended)}`,
      say`configure the receiver with the secret that the rotation showed. If that secret is lost, create a new secret with "${{ command: 'webhook rotate' }}"`,
    );
  }
  return proven(
    'wrong-secret',
    'the receiver has a different secret than this endpoint',
    say`check whether the receiver has the secret of another endpoint or environment, or an extra space or quote. If the secret is lost, create a new secret with "${{ command: 'webhook rotate' }}"`,
  );
}

/** The first 8 hex digits of an HMAC with the secret: enough to compare two secrets, and useless otherwise. */
function checkOf(secret: string, webhookId: string): string {
  const hmac = createHmac('sha256', parseSecret(secret)).update(`quittance diagnostic v1\n${webhookId}`);
  return hmac.digest('hex').slice(0, 8);
}

/** The receiver refused, although the body, secret and time that it reports are right or unknown. */
function otherDiagnosis({ secrets }: DiagnosedAttempt, { code, secretChecks }: DiagnosticAnswer): Diagnosis {
  if (code === 'HEADER_MISSING' || code === 'HEADER_MALFORMED') {
    return proven(
      'headers-changed',
      `webhook-id, webhook-timestamp or webhook-signature ${code === 'HEADER_MISSING' ? 'did not reach the receiver' : 'was changed before it reached the receiver'}`,
      'configure the proxy to pass on all headers unchanged',
    );
  }
  if (code === 'BODY_TOO_LARGE') {
    return proven(
      'body-too-large',
      'the receiver received a body many times longer than the body that Quittance sent',
      'look for a proxy that changes bodies',
    );
  }
  if (code === 'EVENT_MALFORMED') {
    return proven(
      'event-not-understood',
      'the receiver verified the signature, but the body was not the event named by webhook-id',
      "update @quittance/sdk to this server's release, and look for a proxy that changes webhook-id",
    );
  }
  if (code === 'TIMESTAMP_TOO_OLD' || code === 'TIMESTAMP_TOO_NEW') {
    return proven(
      'tolerance',
      "the receiver rejects the webhook's timestamp, although the clocks agree: its tolerance is too short, or the webhook was delayed",
      'use a tolerance of 300 s, and look for a proxy that queues requests',
    );
  }
  if (secretChecks !== null && secrets === null) {
    return likely(
      'signature',
      'the receiver saw the correct body but computed a different signature: it probably uses a different secret',
      "the secrets cannot be decrypted here for a comparison: set QUITTANCE_MASTER_KEY to the service's key, and try again",
    );
  }
  return likely(
    'signature',
    'the receiver could not verify the signature, although it saw the correct body',
    'look for a proxy that changes webhook-id, webhook-timestamp or webhook-signature, and check whether the secret was changed in the meantime',
  );
}

function proven(code: string, problem: string, fix: Text): Diagnosis {
  return { code, certainty: 'proven', problem, fix };
}

function readCount(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/**
 * Finds out how a receiver must have re-serialised the JSON body to get this SHA-256 (hex): a phrase such as `with spaces after commas and
 * colons, as Python's json.dumps does`. Returns `null` if no known way matches.
 */
function recogniseRewriting(body: Uint8Array, sha256: string): string | null {
  const isIt = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex') === sha256;
  const text = new TextDecoder().decode(body);
  if (isIt(Buffer.from(Buffer.from(body).toString('latin1')))) return 'read as Latin-1 instead of UTF-8';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  for (const sorted of [false, true]) {
    for (const layout of LAYOUTS) {
      const plain = write(sorted ? sortKeys(value) : value, layout.indent, layout.spaced);
      for (const escaping of ESCAPINGS) {
        const written = escaping.apply(plain);
        const end = isIt(written) ? '' : isIt(`${written}\n`) ? 'with a trailing line feed' : null;
        if (end === null) continue;
        const traits = [layout.words, sorted ? 'with its keys sorted' : '', escaping.words, end].filter(Boolean);
        return traits.length === 0 ? null : traits.join(', ');
      }
    }
  }
  return null;
}

const LAYOUTS = [
  { indent: '', spaced: false, words: '' },
  { indent: '', spaced: true, words: "with spaces after commas and colons, as Python's json.dumps does" },
  { indent: '  ', spaced: true, words: 'indented by two spaces' },
  { indent: '    ', spaced: true, words: 'indented by four spaces' },
  { indent: '\t', spaced: true, words: 'indented by tabs' },
] as const;

const ESCAPINGS: readonly { words: string; apply(json: string): string }[] = [
  { words: '', apply: (json) => json },
  { words: 'with non-ASCII characters as \\u…', apply: escapeUnicode },
  { words: 'with / as \\/', apply: escapeSlashes },
  {
    words: "with / as \\/ and Unicode as \\u…, as PHP's json_encode does",
    apply: (j) => escapeSlashes(escapeUnicode(j)),
  },
  { words: 'with <, > and & as \\u…, as Go does', apply: escapeHtml },
];

/** JSON contains none of these characters outside strings, so the whole text can be changed at once. */
function escapeUnicode(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, escapeUnit);
}

function escapeHtml(json: string): string {
  return json.replace(/[<>&\u2028\u2029]/g, escapeUnit);
}

function escapeSlashes(json: string): string {
  return json.replaceAll('/', '\\/');
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function write(value: unknown, indent: string, spaced: boolean): string {
  if (indent !== '' || !spaced) return JSON.stringify(value, null, indent);
  if (Array.isArray(value)) return `[${value.map((item) => write(item, indent, spaced)).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([name, member]) => `${JSON.stringify(name)}: ${write(member, indent, spaced)}`,
  );
  return `{${members.join(', ')}}`;
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const members: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}
