import { SCOPES, type Scope, scopesOf } from '../../../core/domain/api-key.ts';
import type { Text } from '../../../core/domain/message.ts';
import type { Role } from '../../operator/actor.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { clip } from '../../operator/input/problems.ts';
import {
  type AdminKeyView,
  createAdminKeyOperation,
  listAdminKeysOperation,
  revokeAdminKeyOperation,
} from '../../operator/subjects/admin-keys.ts';
import { HAND_KEY_NAME } from '../../operator/subjects/invoices.ts';
import { type CreatedKeyView, createKey, type KeyView, listKeys, revokeKey } from '../../operator/subjects/keys.ts';
import { type MasterKeyView, showMasterKeys } from '../../operator/subjects/master-keys.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { rotateReceiptKeyOperation } from '../../operator/subjects/receipts.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation, check, line, lines } from '../forms/form.ts';
import type { Page } from '../page/layout.ts';
import {
  alert,
  type Badge,
  badge,
  type Column,
  copyButton,
  duration,
  facts,
  ltr,
  many,
  number,
  outside,
  table,
  time,
} from '../page/pieces.ts';
import { type ConsoleDeps, performFor, type Routes } from '../page/routes.ts';
import { entryOf, type Fields, needProject, pathPart, urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';
import { readRightsFields, rightsFields } from './people.ts';

/** Adds the pages for a project's keys, the admin API keys, the receipt key and the master keys. */
export function addKeyRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/keys', 'listKeys', ['project', 'revoked', 'all'], async ({ visit, query }) => {
    const { revoked, all } = query;
    const project = needProject(visit, query.project);
    const keys = (await performFor(deps, visit, listKeys, project)).data;
    const mayShow = isAllowed(visit.actor, 'showMasterKeys');
    const create = urlTo(visit, '/settings/keys/new', project);
    const list =
      keys.length === 0
        ? html`<section class="card empty"><h2>No keys yet</h2><p>Your shop needs an API key to create and read invoices.</p><p><a class="button" href="${create}">Create the first key</a></p></section>`
        : keyTable(keys, {
            all: all === undefined ? urlTo(visit, '/settings/keys', project, { all: 'yes' }) : null,
            rights: ({ scopes }) => scopes.join(', '),
            revoke: ({ keyId }) => urlTo(visit, `/settings/keys/${keyId}/revoke`, project),
          });
    return {
      title: 'API keys',
      about: project,
      beside: keys.length === 0 ? null : html`<a class="button" href="${create}">New key</a>`,
      said: revoked === undefined ? null : 'The key was revoked.',
      main: html`${list}
${mayShow ? renderMaster(await performFor(deps, visit, showMasterKeys, {})) : null}`,
    };
  });
  addForm(routes, deps, {
    ...byOperation(deps, createKey, (filled, { projectId }: ListedProjectView) => {
      return { projectId, ...readKeyFields(filled), scopes: SCOPES.filter((scope) => filled[scope] === 'yes') };
    }),
    path: '/settings/keys/new',
    find: async ({ visit }, project) => needProject(visit, project),
    show: (visit, project) => ({
      ...{ title: 'New API key', about: project, button: 'Create key' },
      fields: [...KEY_FIELDS, ...SCOPE_FIELDS],
      consequence: html`<p>Anyone with this key can use its permissions in this project. The key cannot move money. It is shown only once.</p>`,
      back: urlTo(visit, '/settings/keys', project),
    }),
    done: (visit, project, made) =>
      madeKeyPage({
        about: project,
        key: { ...made, id: made.keyId, secret: made.apiKey },
        warning: made.warning,
        steps: terminalLines('API_KEY', firstRequest(deps.publicUrl(), made)),
        back: urlTo(visit, '/settings/keys', project),
      }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, revokeKey, (_filled, { key }: Revoked) => ({ keyId: key.keyId })),
    path: '/settings/keys/:keyId/revoke',
    find: async ({ visit, request }, asked) => {
      const keyId = pathPart(request, 'keyId');
      const project = needProject(visit, asked);
      const { data } = await performFor(deps, visit, listKeys, project);
      const unknown = `there is no key ${clip(keyId)} in the project ${project.projectId}`;
      const key = entryOf(data, (each) => each.keyId === keyId, unknown);
      const others = data.filter((each) => each !== key && each.status === 'active' && each.name !== HAND_KEY_NAME);
      return { project, key, others: others.length };
    },
    show: (visit, { project, key, others }) => ({
      ...{ title: 'Revoke an API key', about: project, button: 'Revoke permanently' },
      consequence: describeRevocation(key, deps.now(), whatIsLeft(key, others)),
      back: urlTo(visit, '/settings/keys', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/settings/keys', project, { revoked: '1' }) }),
  });
  addAdminKeyRoutes(routes, deps);
  addForm(routes, deps, {
    ...byOperation(deps, rotateReceiptKeyOperation, ({ isKeyLost }) => ({ isKeyLost: isKeyLost === 'yes' })),
    path: '/settings/receipt-key',
    find: async ({ visit }) => {
      const { view } = await performFor(deps, visit, showMasterKeys, {});
      return { isLost: view.keys.some(({ use, sealsReceiptKey }) => use === 'missing' && sealsReceiptKey) };
    },
    show: (_visit, { isLost }) => ({
      ...{ title: 'New receipt signing key', button: 'Create new key', back: '/settings/keys' },
      consequence: html`<p>All projects sign their next receipt with the new key. Earlier receipts stay valid: the previous public key stays published, and its private key is erased. Anyone who keeps a copy of the published keys must fetch them again:</p><p>${ltr(`${deps.publicUrl()}/.well-known/quittance-receipt-keys.json`)}</p>`,
      fields: isLost ? [check('isKeyLost', 'The master key for the previous signing key is permanently lost')] : [],
    }),
    done: (_visit, _signing, { keyId, formerKeyId }) => ({
      title: 'Signing key created',
      main: html`<section class="card form"><p>Receipts are now signed with ${ltr(keyId)}${formerKeyId === null ? null : html`, instead of ${ltr(formerKeyId)}`}.</p><div class="actions"><a class="button" href="/settings/keys">Keys</a></div></section>`,
    }),
  });
}

const ADMIN_KEYS = '/settings/admin-keys';

/** Adds the pages for admin API keys. */
function addAdminKeyRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get(ADMIN_KEYS, 'listAdminKeys', ['project', 'revoked', 'all'], async ({ visit, query: { revoked, all } }) => {
    const { data: keys } = await performFor(deps, visit, listAdminKeysOperation, {});
    const list =
      keys.length === 0
        ? html`<section class="card empty"><h2>No admin keys yet</h2><p>With an admin key, programs and the command line can work from another machine without a database password. Within the key's role, they can do everything that people can do here.</p><p><a class="button" href="${ADMIN_KEYS}/new">Create the first key</a></p></section>`
        : keyTable(keys, {
            all: all === undefined ? `${ADMIN_KEYS}?all=yes` : null,
            rights: ({ role, projects }) => (projects === null ? role : `${role}, ${many(projects.length, 'project')}`),
            revoke: ({ adminKeyId }) => `${ADMIN_KEYS}/${adminKeyId}/revoke`,
          });
    return {
      title: 'Admin keys',
      beside: keys.length === 0 ? null : html`<a class="button" href="${ADMIN_KEYS}/new">New admin key</a>`,
      said: revoked === undefined ? null : 'The key was revoked.',
      main: list,
    };
  });
  addForm(routes, deps, {
    ...byOperation(deps, createAdminKeyOperation, (filled, projects: Visit['projects']) => {
      const { role, projectIds } = readRightsFields(filled, projects);
      const limited = projectIds.length === 0 ? undefined : projectIds;
      // The operation refuses an unknown role when it reads its input.
      return { ...readKeyFields(filled), role: role as Role, projects: limited };
    }),
    path: `${ADMIN_KEYS}/new`,
    find: async ({ visit }) => visit.projects,
    show: (_visit, projects) => ({
      ...{ title: 'New admin key', button: 'Create key', back: ADMIN_KEYS },
      fields: [...KEY_FIELDS, ...rightsFields(projects, { role: 'viewer', projects: null })],
      consequence: html`<p>Anyone with this key can do everything that its role allows, without a second factor. Limit its role, projects, IP addresses and lifetime. The key is shown only once.</p>`,
    }),
    done: (_visit, _projects, { adminKeyId: id, adminKey: secret, ...made }) =>
      madeKeyPage({
        about: null,
        key: { ...made, id, secret },
        steps: terminalLines(
          'QUITTANCE_ADMIN_KEY',
          `curl -sS -H "Authorization: Bearer $QUITTANCE_ADMIN_KEY" ${deps.consoleUrl()}/admin/v1/projects`,
        ),
        back: ADMIN_KEYS,
      }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, revokeAdminKeyOperation, (_filled, { adminKeyId }: AdminKeyView) => ({ adminKeyId })),
    path: `${ADMIN_KEYS}/:adminKeyId/revoke`,
    find: async ({ visit, request }) => {
      const adminKeyId = pathPart(request, 'adminKeyId');
      const { data } = await performFor(deps, visit, listAdminKeysOperation, {});
      return entryOf(data, (each) => each.adminKeyId === adminKeyId, `there is no admin key ${clip(adminKeyId)}`);
    },
    show: (_visit, key) => ({
      ...{ title: 'Revoke an admin key', button: 'Revoke permanently', back: ADMIN_KEYS },
      consequence: describeRevocation(key, deps.now(), null),
    }),
    done: () => ({ goTo: `${ADMIN_KEYS}?revoked=1` }),
  });
}

const MEANINGS: Readonly<Record<Scope, string>> = {
  create: 'Create and withdraw invoices',
  read: 'Read invoices and transfers',
  events: 'Read the event feed',
  webhooks: 'Add and change webhook endpoints',
};

const SCOPE_FIELDS = SCOPES.map((name) => check(name, MEANINGS[name], { isOn: scopesOf(null).includes(name) }));

/** The first request to suggest for a key that can't create invoices. */
const READS: Readonly<Record<Exclude<Scope, 'create'>, string>> = {
  read: 'invoices',
  events: 'events',
  webhooks: 'webhook-endpoints',
};

/** The order id ends with the key's id, so that it differs from the ids of existing orders. */
function firstRequest(publicUrl: string, { keyId, scopes }: CreatedKeyView): string {
  const read = SCOPES.find((scope) => scopes.includes(scope));
  if (read !== undefined && read !== 'create') {
    return `curl -sS ${publicUrl}/v1/${READS[read]} -H "X-Api-Key: $API_KEY"`;
  }
  const order = `try-${keyId.slice(-6)}`;
  return `curl -sS ${publicUrl}/v1/invoices \\
  -H "X-Api-Key: $API_KEY" \\
  -H "Idempotency-Key: ${order}" \\
  -H "Content-Type: application/json" \\
  -d '{"amount":"25.00","asset":"USDT","network":"TRON","externalId":"${order}"}'`;
}

type Revoked = { project: ListedProjectView; key: KeyView; others: number };

function whatIsLeft({ name }: KeyView, others: number) {
  if (name === HAND_KEY_NAME)
    return html`<p>The console uses this key: without it, no one can create invoices by hand.</p>`;
  if (others === 0) return html`<p>This is the last key: your shop cannot create invoices until it has a new key.</p>`;
  return html`<p>${many(others, 'other key')} in this project stay active.</p>`;
}

const USES: Record<MasterKeyView['use'], string> = {
  seals: 'encrypts new secrets',
  opens: 'decrypts old secrets',
  missing: 'missing',
};

const COLUMNS: readonly Column<MasterKeyView>[] = [
  ['Master key', ({ keyId }) => ltr(keyId)],
  ['Use', ({ use }) => USES[use]],
  ['Secrets in use', ({ signing }) => number(signing), 'number'],
  ['Receipt key', ({ sealsReceiptKey }) => (sealsReceiptKey ? 'yes' : 'no')],
];

/** Shows the keys that encrypt secrets in the database, and the key that signs receipts. */
function renderMaster({ view, missing }: Awaited<ReturnType<typeof showMasterKeys.run>>): Html {
  return html`<section class="card" aria-labelledby="master"><h2 id="master">Service keys</h2>
<p>Master keys encrypt the signing secrets for webhooks and receipts, and users' sign-in secrets. Master keys come from <code>${view.source}</code>, and Quittance never stores them in the database.</p>${missing === null ? null : alert(html`<p>${renderText(missing)}</p>`)}
</section>
<section class="card flush" aria-label="Master keys">${table('Master keys', COLUMNS, view.keys)}</section>
<p class="hint">Replace the master key on the server, because every process must read the new key: see “The master key” in docs/guides/seals.md.</p>
<p><a href="/settings/receipt-key">New signing key for receipts</a></p>`;
}

/** An API or admin API key in a list. */
type Key = {
  name: string;
  status: KeyView['status'];
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  allowedIps: readonly string[] | null;
};

/** The maximum number of keys in a list. Active keys are listed first, and then the newest of the rest. */
const MAX_SHOWN = 100;

type Look<Listed extends Key> = { all: string | null; rights(key: Listed): string; revoke(key: Listed): string };

/** `all` is the URL of the page that shows every key, or `null` on that page. `revoke` returns a URL. */
function keyTable<Listed extends Key>(keys: readonly Listed[], { all, rights, revoke }: Look<Listed>): Html {
  const newest = keys.toReversed();
  const sorted = [
    ...newest.filter(({ status }) => status === 'active'),
    ...newest.filter(({ status }) => status !== 'active'),
  ];
  const shown = all === null ? sorted : sorted.slice(0, MAX_SHOWN);
  const left = sorted.length - shown.length;
  const columns: Column<Listed>[] = [
    ['Name', (key) => html`${outside(key.name, 60)}<br><small>${rights(key)}</small>`],
    ['State', keyState],
    ['Last used', keyUse],
    ['From', ({ allowedIps }) => addresses(allowedIps)],
    ['Action', (key) => renderRevoke(key, revoke(key))],
  ];
  return html`<section class="card flush" aria-label="Keys">${table('Keys, active ones first', columns, shown)}</section>
${left > 0 ? html`<p class="hint">${number(left)} more are not shown: <a href="${all}">Show all</a></p>` : null}`;
}

function keyUse({ createdAt, lastUsedAt }: Key): Html {
  return html`${lastUsedAt === null ? 'never' : time(lastUsedAt)}<br><small>made ${time(createdAt)}</small>`;
}

/** Showing a few addresses is enough to tell keys apart. */
const MAX_IPS = 5;

function addresses(ips: Key['allowedIps']): Html | string {
  if (ips === null) return 'anywhere';
  const left = ips.length - MAX_IPS;
  return html`<bdi>${ips.slice(0, MAX_IPS).join(', ')}</bdi>${left > 0 ? ` and ${number(left)} more` : null}`;
}

const LOOKS: Readonly<Record<Key['status'], Badge>> = {
  ...{ active: ['Active', 'PAID'], expired: ['Expired', 'EXPIRED'], revoked: ['Revoked', 'EXPIRED'] },
  invalid: ['Invalid seal', 'CONFIRMING'],
};

const mayRevoke = ({ status }: Pick<Key, 'status'>) => status === 'active' || status === 'invalid';

function keyState({ status, expiresAt }: Key): Html {
  const end = status !== 'active' || expiresAt === null ? null : html`<br><small>until ${time(expiresAt)}</small>`;
  return html`${badge(...LOOKS[status])}${end}`;
}

function renderRevoke({ name, status }: Key, url: string): Html {
  if (!mayRevoke({ status })) return html`<span class="hint">–</span>`;
  return html`<a href="${url}">Revoke<span class="unseen"> ${outside(name, 60)}</span></a>`;
}

/** Shows the effects of revoking a key, and the facts known about the key. */
function describeRevocation({ name, status, ...key }: Key, now: number, others: Html | null): Html {
  const { createdAt, lastUsedAt, allowedIps } = key;
  const used =
    lastUsedAt === null
      ? 'never'
      : html`${time(lastUsedAt)} UTC, ${duration(Math.max(0, now - Date.parse(lastUsedAt)))} ago`;
  return html`${mayRevoke({ status }) ? html`<p>Every request with it is rejected, immediately and permanently.</p>${others}` : html`<p>It is already ${status}.</p>`}
${facts([
  ['Name', outside(name, 200)],
  ['Created', html`${time(createdAt)} UTC`],
  ['Last used', used],
  ['From', addresses(allowedIps)],
])}`;
}

/** The fields of every new key. */
const KEY_FIELDS = [
  line('name', 'Name', {
    hint: 'The person or program that uses the key, such as “shop server”.',
    more: html` required`,
  }),
  line('expires', 'Expires (optional)', {
    hint: 'A duration (12h, 90d) or a date (2027-01-31, UTC). Leave empty for a key that never expires.',
  }),
  lines('allowedIps', 'Only from these addresses (optional)', {
    hint: 'IP addresses or CIDR blocks such as 10.0.0.0/8, one per line. Leave empty to allow any address.',
  }),
];

function readKeyFields({ name = '', expires, allowedIps }: Fields) {
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
function madeKeyPage({ about, key, warning, steps, back }: Made): Page {
  return {
    title: 'Key created',
    about,
    main: html`<section class="card form"><h2>Copy this key now</h2><p>Quittance cannot show it again. Store it where your server reads its secrets.</p>
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

/** Shows lines to paste into a terminal. They read `variable` from the terminal so that the key doesn't get into the shell history. */
function terminalLines(variable: string, lines: string): Html {
  const text = `read -rs ${variable} && export ${variable}\n${lines}`;
  return html`<p>The first line asks for the key: paste it and press Enter. The key is not displayed and not kept in the shell history.</p>
<pre><code>${text}</code></pre><p>${copyButton(text, 'Copy the lines')}</p>`;
}
