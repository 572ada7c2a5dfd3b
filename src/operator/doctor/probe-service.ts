import {
  MADE_UP_CLIENT,
  PROBE_HEADER,
  PROBE_PATH,
  type ProbeAnswer,
  proveProbe,
  readProbeAnswer,
} from '../../domain/probe.ts';
import { askUrl, type UrlAnswer, type UrlRefusal } from './ask-url.ts';
import type { DoctorSettings } from './doctor-settings.ts';

/**
 * What the service answers on this machine, `null` where nothing listens, why it does (`inner`, of its metrics port), and what comes back
 * through the public URL, `null` where there is none. `probe`: what the service said of how the request came; `null` where it was not ours that answered, or it cannot be told.
 */
export type Probed = {
  local: UrlAnswer | UrlRefusal | null;
  inner: UrlAnswer | UrlRefusal | null;
  public: UrlAnswer | UrlRefusal | null;
  probe: ProbeAnswer | null;
  isLedgerKnown: boolean;
};

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

export function textOf({ parts }: UrlAnswer): string {
  return parts.map(({ text }) => text).join('');
}
