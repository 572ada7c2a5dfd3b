import { AppError } from '../../../core/domain/errors.ts';
import { SCOPES, type Scope, scopesOf } from '../../../core/domain/scope.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { clip } from '../../operator/input/problems.ts';
import { perform } from '../../operator/operation.ts';
import { HAND_KEY_NAME } from '../../operator/subjects/invoices.ts';
import { type CreatedKeyView, createKey, type KeyView, listKeys, revokeKey } from '../../operator/subjects/keys.ts';
import { type MasterKeyView, showMasterKeys } from '../../operator/subjects/master-keys.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { rotateReceiptKeyOperation } from '../../operator/subjects/receipts.ts';
import { type Html, html } from '../../web/html.ts';
import { addForm, byOperation, type FormField } from '../forms/form.ts';

import type { ConsoleDeps } from '../page/console-deps.ts';
import { alert, type Column, ltr, number, table } from '../page/pieces.ts';
import type { Routes } from '../page/routes.ts';
import { needProject, readQuery, urlTo } from '../page/visit.ts';

import { renderText } from '../page/words.ts';
import { describeRevocation, KEY_FIELDS, keyTable, madeKeyPage, readKeyFields, terminalLines } from './key-pieces.ts';

/** Adds the keys of a project, the receipt key and the master keys. */
export function addKeyRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/keys', 'listKeys', async ({ visit, request }) => {
    const { project: asked, revoked, all } = readQuery(request, ['project', 'revoked', 'all']);
    const project = needProject(visit, asked);
    const keys = (await listKeys.run(deps, visit.actor, project)).data;
    const mayShow = isAllowed(visit.actor, 'showMasterKeys');
    const create = urlTo(visit, '/settings/keys/new', project);
    const list =
      keys.length === 0
        ? html`<section class="card empty"><h2>No keys yet</h2><p>Your shop needs an API key to create and read invoices.</p><p><a class="button" href="${create}">Create the first one</a></p></section>`
        : keyTable(keys, {
            all: all === undefined ? urlTo(visit, '/settings/keys', project, { all: 'yes' }) : null,
            rights: ({ scopes }) => scopes.join(', '),
            revoke: ({ keyId }) => urlTo(visit, `/settings/keys/${keyId}/revoke`, project),
          });
    return {
      title: 'API keys',
      about: project,
      ...(keys.length === 0 ? {} : { beside: html`<a class="button" href="${create}">New key</a>` }),
      main: html`${revoked === undefined ? null : html`<p class="good" role="status">The key was revoked.</p>`}${list}
${mayShow ? renderMaster(await perform(showMasterKeys, deps, visit.actor, {})) : null}`,
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
      consequence: html`<p>Anyone with this key can use its permissions in this project. It cannot move money. It is shown only once.</p>`,
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
      const { keyId = '' } = request.params as { keyId?: string };
      const project = needProject(visit, asked);
      const { data } = await listKeys.run(deps, visit.actor, project);
      const key = data.find((each) => each.keyId === keyId);
      if (key === undefined) {
        throw new AppError('NOT_FOUND', `there is no key ${clip(keyId)} in the project ${project.projectId}`);
      }
      const others = data.filter((each) => each !== key && each.status === 'active' && each.name !== HAND_KEY_NAME);
      return { project, key, others: others.length };
    },
    show: (visit, { project, key, others }) => ({
      ...{ title: 'Revoke an API key', about: project, fields: [], button: 'Revoke permanently' },
      consequence: describeRevocation(key, deps.now(), whatIsLeft(key, others)),
      back: urlTo(visit, '/settings/keys', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/settings/keys', project, { revoked: '1' }) }),
  });
  addForm(routes, deps, {
    ...byOperation(deps, rotateReceiptKeyOperation, ({ isKeyLost }) => ({ isKeyLost: isKeyLost === 'yes' })),
    path: '/settings/receipt-key',
    find: async ({ visit }) => {
      const { view } = await perform(showMasterKeys, deps, visit.actor, {});
      return { isLost: view.keys.some(({ use, sealsReceiptKey }) => use === 'missing' && sealsReceiptKey) };
    },
    show: (_visit, { isLost }) => ({
      ...{ title: 'New receipt signing key', about: null, button: 'Create new key', back: '/settings/keys' },
      consequence: html`<p>All projects use it from their next receipt on. Earlier receipts stay valid: the previous public key stays published, and its secret part is erased. Anyone who keeps a copy of the published keys must fetch them again:</p><p>${ltr(`${deps.publicUrl()}/.well-known/quittance-receipt-keys.json`)}</p>`,
      fields: isLost
        ? [
            {
              kind: 'check',
              name: 'isKeyLost',
              label: 'The master key of the previous signing key is permanently lost',
            },
          ]
        : [],
    }),
    done: (_visit, _signing, { keyId, formerKeyId }) => ({
      title: 'Signing key created',
      main: html`<section class="card form"><p>Receipts are now signed with ${ltr(keyId)}${formerKeyId === null ? null : html`, instead of ${ltr(formerKeyId)}`}.</p><div class="actions"><a class="button" href="/settings/keys">Keys</a></div></section>`,
    }),
  });
}

const MEANINGS: Readonly<Record<Scope, string>> = {
  create: 'Create and withdraw invoices',
  read: 'Read invoices and transfers',
  events: 'Read the event feed',
  webhooks: 'Add and change webhook endpoints',
};

const SCOPE_FIELDS = SCOPES.map((name): FormField => {
  const value = scopesOf(null).includes(name) ? 'yes' : undefined;
  return { kind: 'check', name, label: MEANINGS[name], value };
});

/** The first request to suggest for a key that can't create invoices. */
const READS: Readonly<Record<Exclude<Scope, 'create'>, string>> = {
  read: 'invoices',
  events: 'events',
  webhooks: 'webhook-endpoints',
};

/** The order id ends with the key's id, so that it doesn't match an existing order. */
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
  if (others === 0) return html`<p>It is the last key: your shop cannot create invoices until it has another one.</p>`;
  return html`<p>${number(others)} other ${others === 1 ? 'key' : 'keys'} of this project stay active.</p>`;
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
  return html`<section class="card" aria-labelledby="master"><h2 id="master">Keys of the service</h2>
<p>Master keys encrypt the signing secrets of webhooks and receipts, and the sign-in secrets of users. They come from <code>${view.source}</code> and are never stored in the database.</p>${missing === null ? null : alert(html`<p>${renderText(missing)}</p>`)}
</section>
<section class="card flush" aria-label="Master keys">${table('Master keys', COLUMNS, view.keys)}</section>
<p class="hint">The master key is replaced on the server, because every process must read the new one: see “The master key” in docs/guides/seals.md.</p>
<p><a href="/settings/receipt-key">New signing key of receipts</a></p>`;
}
