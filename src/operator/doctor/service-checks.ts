import { isLoopbackLink } from '../../domain/loopback.ts';
import { PROBE_PAUSE_MS } from '../../domain/probe.ts';
import { redactAnswer } from '../../webhooks/redact.ts';
import { quotePage } from '../../webhooks/web-page.ts';
import type { UrlAnswer, UrlRefusal } from './ask-url.ts';
import { atStake, type Check, type Finding, failed, good, skipped, spell, warning } from './check.ts';
import { type Probed, textOf } from './probe-service.ts';

const isRefusal = (answer: UrlAnswer | UrlRefusal): answer is UrlRefusal => 'code' in answer;

export const service: Check = {
  name: 'service',
  look: async ({ probe, settings }) => {
    const { local, inner } = await probe();
    if (local === null) return skipped('this process has no API, or any free port');
    if (isRefusal(local))
      return skipped(`nothing answers at ${settings.localUrl} (${local.code}): the service does not run here`);
    const { status } = readReadiness(textOf(local));
    const { reason, troubles = [] } = inner === null || isRefusal(inner) ? {} : readReadiness(textOf(inner));
    const fix = 'Do what it says; the log of the service says more.';
    if (local.status !== 200 || status !== 'ready') {
      const page = quotePage(redactAnswer(Buffer.from(textOf(local))));
      if (page !== null) {
        const says = `at ${settings.localUrl} a web page answers, “${page}”, and not Quittance`;
        return failed(says, 'Stop what listens there, or set QUITTANCE_PORT to a free port.');
      }
      return failed(`the service at ${settings.localUrl} is not ready: ${reason ?? `status ${local.status}`}`, fix);
    }
    const [trouble] = troubles;
    return trouble === undefined
      ? good('the service is ready')
      : warning(`the service is ready, and says: ${trouble.detail}`, fix);
  },
};

type Readiness = { status?: string; reason?: string; troubles?: { detail: string }[] };

function readReadiness(text: string): Readiness {
  try {
    return JSON.parse(text) as Readiness;
  } catch {
    return {};
  }
}

const SOON_MS = 14 * 86_400_000;

export const publicUrl: Check = {
  name: 'public-url',
  look: async (look) => {
    const { publicUrl: url } = look.settings;
    if (url === null) {
      const says = 'QUITTANCE_PUBLIC_URL is not set: links lead to this machine, and no payer can open them';
      return atStake(look, says, 'Set QUITTANCE_PUBLIC_URL to the https:// address that payers see.');
    }
    const probed = await look.probe();
    const problem = problemOfUrl(url, probed);
    if (problem !== null) return problem;
    const { public: answer } = probed;
    const ends = answer === null || isRefusal(answer) ? null : answer.certificateEnds;
    if (ends !== null && ends - look.now() < SOON_MS) {
      const says = `the certificate of ${url} is good for ${spell(ends - look.now())} only`;
      return warning(says, 'Have it renewed, and see why that did not happen by itself.');
    }
    return good(
      `${url} leads to this ledger${ends === null ? '' : `, by a certificate that is good until ${new Date(ends).toISOString().slice(0, 10)}`}`,
    );
  },
};

const CERTIFICATE = /^(CERT_|ERR_TLS|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/;

function problemOfUrl(url: string, { public: answer, local, probe, isLedgerKnown }: Probed): Finding | null {
  if (answer === null) return skipped('there is no public URL');
  if (isRefusal(answer)) {
    if (CERTIFICATE.test(answer.code) || answer.code === 'EPROTO') {
      const says = `${url}: payers' browsers refuse its certificate: ${answer.reason} (${answer.code})`;
      return failed(
        says,
        'Give the proxy a certificate for this name from an authority that browsers know, with its chain.',
      );
    }
    if (isDown(local)) return skipped(`${url} does not answer (${answer.code}), and the service does not run here`);
    const says = `${url} does not answer: ${answer.reason} (${answer.code})`;
    return failed(
      says,
      'Correct QUITTANCE_PUBLIC_URL, the name (DNS), the proxy or the firewall; or run this where the public address can be reached.',
    );
  }
  if (probe !== null) return null;
  if (!isLedgerKnown) return skipped(`${url} answers; whether for this ledger cannot be told without its database`);
  if (answer.status === 404) {
    const says = `${url} answers, and not for this ledger: another service, or a release of Quittance before this one`;
    return failed(
      says,
      'Have the proxy pass every path to Quittance, correct QUITTANCE_PUBLIC_URL, or restart the service with this release.',
    );
  }
  if (isDown(local) && answer.status >= 500)
    return skipped(`${url} answers ${answer.status}: the service does not run here`);
  const page = quotePage(redactAnswer(Buffer.from(textOf(answer))));
  const shown = page === null ? '' : ` with the web page “${page}”`;
  const says = `${url} answers ${answer.status}${shown} in the place of Quittance`;
  return failed(says, 'Have the proxy pass every path to Quittance, with no page and no redirection of its own.');
}

function isDown(local: Probed['local']): boolean {
  return local !== null && isRefusal(local);
}

export const streams: Check = {
  name: 'streams',
  look: async ({ probe }) => {
    const { public: answer, probe: told } = await probe();
    if (answer === null || isRefusal(answer) || told === null)
      return skipped('nothing of ours answers at a public URL');
    const fix = 'Have the proxy hold no answer back: proxy_buffering off, no compression of text/event-stream.';
    if (answer.encoding !== '') return failed(`streams are compressed on the way (${answer.encoding})`, fix);
    const firstMs = answer.parts[0]?.atMs ?? 0;
    const apartMs = (answer.parts.at(-1)?.atMs ?? 0) - firstMs;
    const says = 'what was sent half a second apart came together: open pages will show a payment late';
    return apartMs < PROBE_PAUSE_MS / 2 ? failed(says, fix) : good('streams are passed on as they are sent');
  },
};

/** `0.0.0.0/0` and the like: whoever asks is believed. */
const EVERYBODY = /^(?:[\d.]+\/[0-7]|[\da-f:]+\/(?:\d|1[0-5]))$/i;

export const proxy: Check = {
  name: 'proxy',
  look: async (look) => {
    const { trustProxy, publicUrl: url } = look.settings;
    const broad = trustProxy.find((entry) => EVERYBODY.test(entry));
    const narrow = 'Name in QUITTANCE_TRUST_PROXY the addresses of your proxy, and no others.';
    if (broad !== undefined) {
      return failed(
        `QUITTANCE_TRUST_PROXY has ${broad}: anybody can pretend to be anybody, past limits and allow lists`,
        narrow,
      );
    }
    const { probe: told } = await look.probe();
    if (url === null || told === null) return skipped('nothing of ours answers at a public URL');
    const isDirect = url.startsWith('http:');
    return judgeProxy(told, { isDirect: isDirect && isLoopbackLink(new URL(url).hostname), narrow });
  },
};

type Told = NonNullable<Probed['probe']>;

function judgeProxy(
  { forwarded, isProxyTrusted }: Told,
  { isDirect, narrow }: { isDirect: boolean; narrow: string },
): Finding {
  if (forwarded === 'same' && !isProxyTrusted && isDirect) return good('no proxy is in between, and none is trusted');
  if (forwarded === 'none') {
    const fix =
      'Have the proxy send X-Forwarded-For with the address of its client; see "Load balancer" in docs/operations.md.';
    return failed('the proxy says nothing of its clients: all payers count as one, and are limited together', fix);
  }
  if (!isProxyTrusted) {
    const fix =
      'Set QUITTANCE_TRUST_PROXY to the address of the proxy, as the service sees it; "loopback" if it runs on the same machine.';
    return failed('who passes requests on is not trusted: all payers count as one, and are limited together', fix);
  }
  if (forwarded === 'same') {
    const says = 'the proxy passes on what clients say of themselves: anybody can pretend to be anybody';
    return failed(says, `Have the proxy append or set X-Forwarded-For ($proxy_add_x_forwarded_for). ${narrow}`);
  }
  return good('the proxy is trusted, and says who its clients are');
}
