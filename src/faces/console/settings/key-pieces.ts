import type { Text } from '../../../core/domain/message.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { FormField } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import { alert, copyButton, duration, facts, ltr, number, outside, table, time } from '../page/pieces.ts';
import type { Fields } from '../page/visit.ts';
import { renderText } from '../page/words.ts';

/** A key of the API or admin API in a list. */
export type Key = {
  name: string;
  status: 'active' | 'expired' | 'revoked';
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  allowedIps: readonly string[] | null;
};

/** Active keys come first, then the newest of the rest. */
const MAX_SHOWN = 100;

type Look<Listed extends Key> = { all: string | null; rights(key: Listed): string; revoke(key: Listed): string };

/** `all` is the URL of the page that shows the rest too, or `null` if this is it. `revoke` returns a URL. */
export function keyTable<Listed extends Key>(keys: readonly Listed[], { all, rights, revoke }: Look<Listed>): Html {
  const newest = keys.toReversed();
  const sorted = [
    ...newest.filter(({ status }) => status === 'active'),
    ...newest.filter(({ status }) => status !== 'active'),
  ];
  const shown = all === null ? sorted : sorted.slice(0, MAX_SHOWN);
  const left = sorted.length - shown.length;
  const columns = [
    ['Name', (key: Listed) => html`${outside(key.name, 60)}<br><small>${rights(key)}</small>`] as const,
    ['State', keyState<Listed>] as const,
    ['Last used', keyUse<Listed>] as const,
    ['From', ({ allowedIps }: Listed) => addresses(allowedIps)] as const,
    ['Action', (key: Listed) => renderRevoke(key, revoke(key))] as const,
  ];
  return html`<section class="card flush" aria-label="Keys">${table('Keys, active ones first', columns, shown)}</section>
${left > 0 ? html`<p class="hint">${number(left)} more are not shown: <a href="${all}">Show all</a></p>` : null}`;
}

function keyUse<Listed extends Key>({ createdAt, lastUsedAt }: Listed): Html {
  return html`${lastUsedAt === null ? 'never' : time(lastUsedAt)}<br><small>made ${time(createdAt)}</small>`;
}

/** A few addresses are enough to tell keys apart. */
const MAX_IPS = 5;

function addresses(ips: Key['allowedIps']): Html | string {
  if (ips === null) return 'anywhere';
  const left = ips.length - MAX_IPS;
  return html`<bdi>${ips.slice(0, MAX_IPS).join(', ')}</bdi>${left > 0 ? ` and ${number(left)} more` : null}`;
}

const NONE = html`<span class="hint">–</span>`;
const LOOKS = { active: ['PAID', 'Active'], expired: ['EXPIRED', 'Expired'], revoked: ['EXPIRED', 'Revoked'] } as const;

function keyState<Listed extends Key>({ status, expiresAt }: Listed): Html {
  const [look, text] = LOOKS[status];
  const end = status !== 'active' || expiresAt === null ? null : html`<br><small>until ${time(expiresAt)}</small>`;
  return html`<span class="badge" data-state="${look}">${text}</span>${end}`;
}

function renderRevoke({ name, status }: Key, url: string): Html {
  if (status !== 'active') return NONE;
  return html`<a href="${url}">Revoke<span class="unseen"> ${outside(name, 60)}</span></a>`;
}

/** Shows what revoking a key affects, and what is known about it. */
export function describeRevocation({ name, status, ...key }: Key, now: number, others: Html | null): Html {
  const { createdAt, lastUsedAt, allowedIps } = key;
  const used =
    lastUsedAt === null
      ? 'never'
      : html`${time(lastUsedAt)} UTC, ${duration(Math.max(0, now - Date.parse(lastUsedAt)))} ago`;
  return html`${status === 'active' ? html`<p>Every request with it is rejected, immediately and permanently.</p>${others}` : html`<p>It is already ${status}.</p>`}
${facts([
  ['Name', outside(name, 200)],
  ['Created', html`${time(createdAt)} UTC`],
  ['Last used', used],
  ['From', addresses(allowedIps)],
])}`;
}

/** The fields of every new key. */
export const KEY_FIELDS: readonly FormField[] = [
  {
    kind: 'line',
    name: 'name',
    label: 'Name',
    hint: 'Who or what uses it, such as “shop server”.',
    more: html` required`,
  },
  {
    ...{ kind: 'line', name: 'expires', label: 'Expires (optional)' },
    hint: 'After a duration (12h, 90d) or on a date (2027-01-31, UTC). Leave empty for a key that never expires.',
  },
  {
    ...{ kind: 'lines', name: 'allowedIps', label: 'Only from these addresses (optional)' },
    hint: 'IP addresses or CIDR blocks such as 10.0.0.0/8, one per line. Leave empty to allow any address.',
  },
];

export function readKeyFields({ name = '', expires, allowedIps }: Fields) {
  const lines = (allowedIps ?? '').split('\n').filter((line) => line.trim() !== '');
  return { name, expires, allowedIps: lines.length === 0 ? undefined : lines };
}

type Made = {
  about: ListedProjectView | null;
  key: Pick<Key, 'name' | 'expiresAt' | 'allowedIps'> & { id: string; secret: string };
  warning?: Text | undefined;
  steps: Html;
  back: string;
};

/** The only page that ever shows a key's secret. */
export function madeKeyPage({ about, key, warning, steps, back }: Made): Page {
  return {
    title: 'Key created',
    about,
    main: html`<section class="card form"><h2>Copy this key now</h2><p>It cannot be shown again. Store it where your server reads its secrets.</p>
<pre><code>${ltr(key.secret)}</code></pre><p>${copyButton(key.secret, 'Copy the key')}</p>
${facts([
  ['Name', outside(key.name, 200)],
  ['Id', ltr(key.id)],
  ['Expires', key.expiresAt === null ? 'never' : html`${time(key.expiresAt)} UTC`],
  ['From', addresses(key.allowedIps)],
])}${warning === undefined ? null : alert(html`<p>${renderText(warning)}.</p>`)}</section>
<section class="card form" aria-labelledby="try"><h2 id="try">Try it</h2>${steps}
<div class="actions"><a class="button" href="${back}">I have stored the key</a></div></section>`,
  };
}

/** Shows lines to paste into a terminal. They read `variable` from the terminal, so that the key doesn't get into the shell history. */
export function terminalLines(variable: string, lines: string): Html {
  const text = `read -rs ${variable} && export ${variable}\n${lines}`;
  return html`<p>The first line asks for the key: paste it and press Enter. The key is not displayed and not kept in the shell history.</p>
<pre><code>${text}</code></pre><p>${copyButton(text, 'Copy the lines')}</p>`;
}
