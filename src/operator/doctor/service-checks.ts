import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { TLSSocket } from 'node:tls';
import { isLoopbackLink } from '../../domain/loopback.ts';
import {
  MADE_UP_CLIENT,
  PROBE_HEADER,
  PROBE_PATH,
  PROBE_PAUSE_MS,
  proveProbe,
  readProbeAnswer,
} from '../../domain/probe.ts';
import { redactAnswer } from '../../webhooks/redact.ts';
import { quotePage } from '../../webhooks/web-page.ts';
import {
  atStake,
  check,
  type DoctorSettings,
  type Finding,
  failed,
  good,
  type Probed,
  skipped,
  spell,
  type UrlAnswer,
  type UrlRefusal,
  warning,
} from './check.ts';

const MAX_PARTS_BYTES = 64 * 1024;

/** Asks a URL once, on a connection of its own, follows nowhere, and reads the answer to its end. Never fails. */
function askUrl(
  url: URL,
  { headers = {}, timeoutMs }: { headers?: Record<string, string>; timeoutMs: number },
): Promise<UrlAnswer | UrlRefusal> {
  const startedMs = performance.now();
  return new Promise((resolve) => {
    const refuse = (error: Error) => resolve({ code: codeOf(error), reason: error.message || codeOf(error) });
    const send = url.protocol === 'https:' ? tlsRequest : plainRequest;
    const signal = AbortSignal.timeout(timeoutMs);
    const asking = send(url, { headers, agent: false, signal }, (response) => {
      const parts: { text: string; atMs: number }[] = [];
      let bytes = 0;
      const socket = response.socket;
      const ends = socket instanceof TLSSocket ? Date.parse(socket.getPeerCertificate().valid_to) : null;
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        bytes += text.length;
        if (bytes <= MAX_PARTS_BYTES) parts.push({ text, atMs: performance.now() - startedMs });
      });
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          encoding: response.headers['content-encoding'] ?? '',
          parts,
          certificateEnds: ends === null || Number.isNaN(ends) ? null : ends,
        }),
      );
      response.once('error', refuse);
    });
    asking.once('error', (error) =>
      refuse(
        signal.aborted
          ? Object.assign(new Error(`no whole answer within ${timeoutMs / 1000} s`), { code: 'LATE' })
          : error,
      ),
    );
    asking.end();
  });
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
}

const ANSWER_MS = 5000;

type Deps = { settings: DoctorSettings; random(bytes: number): Uint8Array; ledgerId: string | null };

/** `ledgerId`: `null` where there is no database that says it. */
export async function probeService({ settings, random, ledgerId }: Deps): Promise<Probed> {
  const { localUrl, metricsUrl, publicUrl } = settings;
  const ready = (url: string) => askUrl(new URL('/readyz', url), { timeoutMs: ANSWER_MS });
  const nonce = Buffer.from(random(16)).toString('hex');
  const headers = {
    'x-forwarded-for': MADE_UP_CLIENT,
    accept: 'text/event-stream',
    ...(ledgerId === null ? {} : { [PROBE_HEADER]: `${nonce}.${proveProbe(ledgerId, 'doctor', nonce)}` }),
  };
  const [local, inner, answer] = await Promise.all([
    localUrl === null ? null : ready(localUrl),
    metricsUrl === null ? null : ready(metricsUrl),
    publicUrl === null ? null : askUrl(new URL(PROBE_PATH, publicUrl), { headers, timeoutMs: ANSWER_MS }),
  ]);
  const told = answer !== null && 'status' in answer ? readProbeAnswer(textOf(answer)) : null;
  const isOurs = told !== null && ledgerId !== null && told.proof === proveProbe(ledgerId, 'service', nonce);
  return { local, inner, public: answer, probe: isOurs ? told : null, isLedgerKnown: ledgerId !== null };
}

function textOf({ parts }: UrlAnswer): string {
  return parts.map(({ text }) => text).join('');
}

const isRefusal = (answer: UrlAnswer | UrlRefusal): answer is UrlRefusal => 'code' in answer;

export const service = check('service', async ({ probe, settings }) => {
  const { local, inner } = await probe();
  if (local === null) return skipped('this process has no API, or uses any free port');
  if (isRefusal(local))
    return skipped(`nothing answers at ${settings.localUrl} (${local.code}): the service isn't running here`);
  const { status } = readReadiness(textOf(local));
  const { reason, troubles = [] } = inner === null || isRefusal(inner) ? {} : readReadiness(textOf(inner));
  const fix = "Follow the message. The service's log has details.";
  if (local.status !== 200 || status !== 'ready') {
    const page = quotePage(redactAnswer(Buffer.from(textOf(local))));
    if (page !== null) {
      const says = `${settings.localUrl} returns the web page “${page}” instead of Quittance`;
      return failed(says, 'Stop the other program on that port, or set QUITTANCE_PORT to a free port.');
    }
    return failed(`the service at ${settings.localUrl} is not ready: ${reason ?? `status ${local.status}`}`, fix);
  }
  const [trouble] = troubles;
  return trouble === undefined
    ? good('the service is ready')
    : warning(`the service is ready, but reports: ${trouble.detail}`, fix);
});

type Readiness = { status?: string; reason?: string; troubles?: { detail: string }[] };

function readReadiness(text: string): Readiness {
  try {
    return JSON.parse(text) as Readiness;
  } catch {
    return {};
  }
}

const SOON_MS = 14 * 86_400_000;

export const publicUrl = check('public-url', async (look) => {
  const { publicUrl: url } = look.settings;
  if (url === null) {
    const says = "QUITTANCE_PUBLIC_URL is not set, so payment links point to this machine and payers can't open them";
    return atStake(look, says, 'Set QUITTANCE_PUBLIC_URL to the https:// address that payers see.');
  }
  const probed = await look.probe();
  const problem = problemOfUrl(url, probed);
  if (problem !== null) return problem;
  const { public: answer } = probed;
  const ends = answer === null || isRefusal(answer) ? null : answer.certificateEnds;
  if (ends !== null && ends - look.now() < SOON_MS) {
    const says = `the certificate of ${url} expires in ${spell(ends - look.now())}`;
    return warning(says, 'Renew it, and find out why automatic renewal failed.');
  }
  return good(
    `${url} leads to this ledger${ends === null ? '' : `, with a certificate that is valid until ${new Date(ends).toISOString().slice(0, 10)}`}`,
  );
});

const CERTIFICATE = /^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

function problemOfUrl(url: string, { public: answer, local, probe, isLedgerKnown }: Probed): Finding | null {
  if (answer === null) return skipped('there is no public URL');
  if (isRefusal(answer)) {
    if (CERTIFICATE.test(answer.code) || answer.code === 'EPROTO') {
      const says = `payers' browsers reject the certificate of ${url}: ${answer.reason} (${answer.code})`;
      return failed(
        says,
        'Give the proxy a certificate for this name from a trusted authority, including the intermediate certificates.',
      );
    }
    if (isDown(local)) return skipped(`${url} does not answer (${answer.code}), and the service isn't running here`);
    const says = `${url} does not answer: ${answer.reason} (${answer.code})`;
    return failed(
      says,
      'Correct QUITTANCE_PUBLIC_URL, DNS, the proxy or the firewall, or run this command where the public URL can be reached.',
    );
  }
  if (probe !== null) return null;
  if (!isLedgerKnown)
    return skipped(`${url} answers, but without the database it can't be checked whether it serves this ledger`);
  if (answer.status === 404) {
    const says = `${url} doesn't serve this ledger: it is another service, or an older release of Quittance`;
    return failed(
      says,
      'Configure the proxy to pass every path to Quittance, correct QUITTANCE_PUBLIC_URL, or restart the service with this release.',
    );
  }
  if (isDown(local) && answer.status >= 500)
    return skipped(`${url} answers ${answer.status}: the service isn't running here`);
  const page = quotePage(redactAnswer(Buffer.from(textOf(answer))));
  const shown = page === null ? '' : ` with the web page “${page}”`;
  const says = `${url} answers ${answer.status}${shown} instead of Quittance`;
  return failed(says, 'Configure the proxy to pass every path to Quittance, without pages or redirects of its own.');
}

function isDown(local: Probed['local']): boolean {
  return local !== null && isRefusal(local);
}

export const streams = check('streams', async ({ probe }) => {
  const { public: answer, probe: told } = await probe();
  if (answer === null || isRefusal(answer) || told === null) return skipped("Quittance doesn't answer at a public URL");
  const fix = 'Turn off buffering and compression of text/event-stream in the proxy (nginx: proxy_buffering off).';
  if (answer.encoding !== '') return failed(`the proxy compresses event streams (${answer.encoding})`, fix);
  const firstMs = answer.parts[0]?.atMs ?? 0;
  const apartMs = (answer.parts.at(-1)?.atMs ?? 0) - firstMs;
  const says = 'the proxy buffers event streams, so open payment pages will show a payment late';
  return apartMs < PROBE_PAUSE_MS / 2 ? failed(says, fix) : good('the proxy passes event streams on immediately');
});

/** `0.0.0.0/0` and the like: whoever asks is believed. */
const EVERYBODY = /^(?:[\d.]+\/[0-7]|[\da-f:]+\/(?:\d|1[0-5]))$/i;

export const proxy = check('proxy', async (look) => {
  const { trustProxy, publicUrl: url } = look.settings;
  const broad = trustProxy.find((entry) => EVERYBODY.test(entry));
  const narrow = 'Set QUITTANCE_TRUST_PROXY to the addresses of your proxy, and no others.';
  if (broad !== undefined) {
    return failed(
      `QUITTANCE_TRUST_PROXY contains ${broad}, so anyone can fake their IP address and bypass limits and allow lists`,
      narrow,
    );
  }
  const { probe: told } = await look.probe();
  if (url === null || told === null) return skipped("Quittance doesn't answer at a public URL");
  const isDirect = url.startsWith('http:');
  return judgeProxy(told, { isDirect: isDirect && isLoopbackLink(new URL(url).hostname), narrow });
});

type Told = NonNullable<Probed['probe']>;

function judgeProxy(
  { forwarded, isProxyTrusted }: Told,
  { isDirect, narrow }: { isDirect: boolean; narrow: string },
): Finding {
  if (forwarded === 'same' && !isProxyTrusted && isDirect) return good('there is no proxy, and none is trusted');
  if (forwarded === 'none') {
    const fix =
      'Configure the proxy to send X-Forwarded-For with the client\'s address: see "Load balancer" in docs/guides/high-availability.md.';
    return failed("the proxy doesn't pass on client addresses, so all payers share one rate limit", fix);
  }
  if (!isProxyTrusted) {
    const fix =
      'Set QUITTANCE_TRUST_PROXY to the address of the proxy, as the service sees it; "loopback" if it runs on the same machine.';
    return failed('the proxy is not trusted, so all payers share one rate limit', fix);
  }
  if (forwarded === 'same') {
    const says = 'the proxy passes on addresses that clients made up, so anyone can fake their IP address';
    return failed(says, `Configure the proxy to append or set X-Forwarded-For ($proxy_add_x_forwarded_for). ${narrow}`);
  }
  return good('the proxy is trusted and passes on client addresses');
}
