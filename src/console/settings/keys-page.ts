import type { KeyView } from '../../operator/subjects/keys.ts';
import type { MasterKeyView, showMasterKeys } from '../../operator/subjects/master-keys.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, ltr, number, table } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { renderText } from '../page/words.ts';
import { keyTable } from './key-pieces.ts';

type Master = Awaited<ReturnType<typeof showMasterKeys.run>>;
/** `master` `null`: the visitor's role may not see those. */
type Shown = { keys: readonly KeyView[]; master: Master | null; isRevoked: boolean; isAll: boolean };

/** The keys of the shop's API, without their secrets. */
export function keysPage(visit: Visit, project: ListedProjectView, { keys, master, isRevoked, isAll }: Shown): Page {
  const create = urlTo(visit, '/settings/keys/new', project);
  const list =
    keys.length === 0
      ? html`<section class="card empty"><h2>No key yet</h2><p>Your shop makes and reads invoices by the API, with a key of its own.</p><p><a class="button" href="${create}">Make the first one</a></p></section>`
      : keyTable(keys, {
          all: isAll ? null : urlTo(visit, '/settings/keys', project, { all: 'yes' }),
          rights: ({ scopes }) => scopes.join(', '),
          revoke: ({ keyId }) => urlTo(visit, `/settings/keys/${keyId}/revoke`, project),
        });
  return {
    title: 'API keys',
    about: project,
    ...(keys.length === 0 ? {} : { beside: html`<a class="button" href="${create}">New key</a>` }),
    main: html`${isRevoked ? html`<p class="good" role="status">The key is revoked.</p>` : null}${list}
${master === null ? null : renderMaster(master)}`,
  };
}

const USES: Record<MasterKeyView['use'], string> = {
  seals: 'seals what is new',
  opens: 'opens what is old',
  missing: 'missing here',
};

const COLUMNS = [
  ['Master key', ({ keyId }: MasterKeyView) => ltr(keyId)],
  ['Use', ({ use }: MasterKeyView) => USES[use]],
  ['Secrets in use', ({ signing }: MasterKeyView) => number(signing), 'number'],
  ['Receipt key', ({ sealsReceiptKey }: MasterKeyView) => (sealsReceiptKey ? 'yes' : 'no')],
] as const;

/** What seals secrets in the database, and what signs receipts. */
function renderMaster({ view, missing }: Master): Html {
  return html`<section class="card" aria-labelledby="master"><h2 id="master">Keys of the service</h2>
<p>Master keys seal what webhooks and receipts are signed with, and the codes of people. They come from <code>${view.source}</code>, and stand in no database.</p>${missing === null ? null : alert(html`<p>${renderText(missing)}</p>`)}
</section>
<section class="card flush" aria-label="Master keys">${table('Master keys', COLUMNS, view.keys)}</section>
<p class="hint">Whoever has the machine that runs Quittance replaces the master key, because every process must read the new one: see “The master key” in docs/configuration.md.</p>
<p><a href="/settings/receipt-key">New signing key of receipts</a></p>`;
}
