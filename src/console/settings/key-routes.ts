import { AppError } from '../../domain/errors.ts';
import { SCOPES, type Scope, scopesOf } from '../../domain/scope.ts';
import { isAllowed } from '../../operator/authorize.ts';
import { clip } from '../../operator/input/clip.ts';
import { HAND_KEY_NAME } from '../../operator/invoices/create-invoice-by-hand.ts';
import { perform } from '../../operator/operation.ts';
import { type CreatedKeyView, createKey, type KeyView, listKeys, revokeKey } from '../../operator/subjects/keys.ts';
import { showMasterKeys } from '../../operator/subjects/master-keys.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type RotatedReceiptKeyView, rotateReceiptKeyOperation } from '../../operator/subjects/receipts.ts';
import { html } from '../../web/html.ts';
import { addForm, byOperation } from '../forms/add-form.ts';
import type { Form, FormField } from '../forms/form.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { ltr, number } from '../page/pieces.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Routes } from '../page/routes.ts';
import { needProject, urlTo } from '../page/visit.ts';
import { describeRevocation, KEY_FIELDS, madeKeyPage, readKeyFields, terminalLines } from './key-pieces.ts';
import { keysPage } from './keys-page.ts';

/** The keys of a project, and those that sign receipts and seal secrets. */
export function addKeyRoutes(routes: Routes, deps: ConsoleDeps): void {
  routes.get('/settings/keys', 'listKeys', async ({ visit, request }) => {
    const { project: asked, revoked, all } = readQuery(request, ['project', 'revoked', 'all']);
    const project = needProject(visit, asked);
    const keys = (await listKeys.run(deps, visit.actor, project)).data;
    const mayShow = isAllowed(visit.actor, 'showMasterKeys');
    const master = mayShow ? await perform(showMasterKeys, deps, visit.actor, {}) : null;
    return keysPage(visit, project, { keys, master, isRevoked: revoked !== undefined, isAll: all !== undefined });
  });
  addForm(routes, deps, creation(deps));
  addForm(routes, deps, revocation(deps));
  addForm(routes, deps, receiptKey(deps));
}

type Creation = ReturnType<typeof createKey.read>;

function creation(deps: ConsoleDeps): Form<ListedProjectView, Creation, CreatedKeyView> {
  return {
    ...byOperation(deps, createKey, (filled, { projectId }: ListedProjectView) => {
      return { projectId, ...readKeyFields(filled), scopes: SCOPES.filter((scope) => filled[scope] === 'yes') };
    }),
    path: '/settings/keys/new',
    find: async ({ visit }, project) => needProject(visit, project),
    show: (visit, project) => ({
      ...{ title: 'New API key', about: project, button: 'Make the key' },
      fields: [...KEY_FIELDS, ...SCOPE_FIELDS],
      consequence: html`<p>Whoever has it does in this project what it may. It moves no money. It is shown once.</p>`,
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
  };
}

const MEANINGS: Readonly<Record<Scope, string>> = {
  create: 'Create and withdraw invoices',
  read: 'Read invoices and transfers',
  events: 'Read the feed of events',
  webhooks: 'Add and change the endpoints that events are sent to',
};

const SCOPE_FIELDS = SCOPES.map((name): FormField => {
  const value = scopesOf(null).includes(name) ? 'yes' : undefined;
  return { kind: 'check', name, label: MEANINGS[name], value };
});

/** What a key that creates nothing asks first. */
const READS: Readonly<Record<Exclude<Scope, 'create'>, string>> = {
  read: 'invoices',
  events: 'events',
  webhooks: 'webhook-endpoints',
};

/** The end of the key's id keeps it from an order that there is. */
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

function revocation(deps: ConsoleDeps): Form<Revoked, { uuid: string }, unknown> {
  return {
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
      ...{ title: 'Revoke an API key', about: project, fields: [], button: 'Revoke it for ever' },
      consequence: describeRevocation(key, deps.now(), whatIsLeft(key, others)),
      back: urlTo(visit, '/settings/keys', project),
    }),
    done: (visit, { project }) => ({ goTo: urlTo(visit, '/settings/keys', project, { revoked: '1' }) }),
  };
}

function whatIsLeft({ name }: KeyView, others: number) {
  if (name === HAND_KEY_NAME) return html`<p>With it people make invoices here: none can be made by hand any more.</p>`;
  if (others === 0) return html`<p>It is the last one: your shop makes no invoices until it has another key.</p>`;
  return html`<p>${number(others)} other ${others === 1 ? 'key' : 'keys'} of this project can still be used.</p>`;
}

type Signing = { isLost: boolean };

function receiptKey(deps: ConsoleDeps): Form<Signing, { isKeyLost: boolean }, RotatedReceiptKeyView> {
  return {
    ...byOperation(deps, rotateReceiptKeyOperation, ({ isKeyLost }) => ({ isKeyLost: isKeyLost === 'yes' })),
    path: '/settings/receipt-key',
    find: async ({ visit }) => {
      const { view } = await perform(showMasterKeys, deps, visit.actor, {});
      return { isLost: view.keys.some(({ use, sealsReceiptKey }) => use === 'missing' && sealsReceiptKey) };
    },
    show: (_visit, { isLost }) => ({
      ...{ title: 'New signing key of receipts', about: null, button: 'Make a new key', back: '/settings/keys' },
      consequence: html`<p>All projects sign receipts with it from the next one on. Receipts of before stay valid: the former key stays published, and its secret part is erased. Who keeps a copy of the published keys must fetch it again:</p><p>${ltr(`${deps.publicUrl()}/.well-known/quittance-receipt-keys.json`)}</p>`,
      fields: isLost
        ? [{ kind: 'check', name: 'isKeyLost', label: 'The master key that seals the former one is lost for ever' }]
        : [],
    }),
    done: (_visit, _signing, { keyId, formerKeyId }) => ({
      title: 'Signing key made',
      main: html`<section class="card form"><p>Receipts are signed with ${ltr(keyId)} now${formerKeyId === null ? null : html`, in place of ${ltr(formerKeyId)}`}.</p><div class="actions"><a class="button" href="/settings/keys">Keys</a></div></section>`,
    }),
  };
}
