import type { SessionView } from '../../operator/subjects/sessions.ts';
import { type Html, html } from '../../web/html.ts';
import { oneClick } from '../forms/form.ts';
import { outside, table, time } from '../page/pieces.ts';
import type { Visit } from '../page/visit.ts';

/** `own`: the session that asks. `end`: the path to which a session's button is sent. */
type Shown = { own: string | null; end(sessionId: string): string };

/** Sessions, the last used first, each with a button that ends it. `of`: whose they are, where that is not said by the page. */
export function sessionTable(
  visit: Visit,
  sessions: readonly SessionView[],
  { own, end, of }: Shown & { of?: 'people' },
): Html {
  const button = ({ sessionId, login }: SessionView) =>
    oneClick(visit, end(sessionId), html`End<span class="unseen"> the session ${sessionId} of ${login}</span>`);
  const who = [
    'Who',
    ({ personId, login }: SessionView) =>
      html`<a class="row" href="/settings/people/${personId}">${outside(login, 100)}</a>`,
  ] as const;
  const columns = [
    ...(of === 'people' ? [who] : []),
    ['Last seen', ({ sessionId, seenAt }: SessionView) => (sessionId === own ? THIS_ONE : time(seenAt))],
    [
      'Since',
      ({ createdAt, proof }: SessionView) => html`${time(createdAt)} <small class="hint">by ${PROOFS[proof]}</small>`,
    ],
    [
      'From',
      ({ origin, userAgent }: SessionView) =>
        html`${browserOf(userAgent)} <small class="hint">${outside(origin, 200)}</small>`,
    ],
    ['End it', button],
  ] as const;
  return table('Sessions, the last used first', columns, sessions);
}

const THIS_ONE = html`<span class="badge" data-state="PAID">This one</span>`;

const PROOFS: Record<SessionView['proof'], string> = {
  passkey: 'passkey',
  totp: 'password and code',
  'recovery-code': 'password and recovery code',
};

/** Each names itself, and most name others too: the first that fits is meant. */
const BROWSERS = [
  [/\bEdg(A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(Firefox|FxiOS)\//, 'Firefox'],
  [/\b(Chrome|CriOS)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const;
const SYSTEMS = [
  [/\b(iPhone|iPad)\b/, 'iOS'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
] as const;

/** `Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0` → `Firefox, Linux`. What it is not known by is shown as it is. */
function browserOf(userAgent: string | null): Html | string {
  if (userAgent === null) return 'an unknown browser';
  const name = BROWSERS.find(([sign]) => sign.test(userAgent))?.[1];
  if (name === undefined) return outside(userAgent, 40);
  const system = SYSTEMS.find(([sign]) => sign.test(userAgent))?.[1];
  return html`<span title="${userAgent}">${system === undefined ? name : `${name}, ${system}`}</span>`;
}
