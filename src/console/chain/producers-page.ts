import { isAllowed } from '../../operator/authorize.ts';
import type { ProducersView } from '../../operator/chain/views.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { outside, table, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';

type Adopted = ProducersView['data'][number];

const REASONS: Readonly<Record<string, string>> = {
  first: 'the first that were learned',
  vote: 'a vote',
  key: 'another key of one of them',
  operator: 'accepted by an operator',
};

/** When and why a set of producers was taken over, and who named it. */
export function sayProducers({ adoptedAt, reason, nodes, producers }: Adopted): Html {
  return html`${producers.length} producers since ${time(adoptedAt)} UTC: ${REASONS[reason] ?? reason}; named by ${nodes.map((node, index) => html`${index === 0 ? '' : ', '}${outside(node)}`)}.`;
}

/** Changes that a page shows; each is a vote of the network, every six hours at most. */
const MAX_CHANGES = 30;

export function producersPage(visit: Visit, project: ListedProjectView, { network, data }: ProducersView): Page {
  const [newest] = data;
  return {
    title: 'Who may make blocks',
    about: project,
    main: html`<p><a href="${urlTo(visit, '/chain', project)}">Chain</a></p>
${newest === undefined ? html`<section class="card empty"><h2>None is known yet</h2><p>The watcher learns them when it first follows ${network}.</p></section>` : renderSets(newest, data)}
${isAllowed(visit.actor, 'acceptProducers') ? html`<details class="card"><summary>When the network changed more than a vote can</summary><p>Then an alarm tells it, and the watcher waits. Compare the producers with an explorer that is none of your nodes. Then whoever has the machine that runs Quittance accepts those that the nodes name: see “producers-refused” in docs/chain-truth.md.</p></details>` : null}`,
  };
}

function renderSets(newest: Adopted, data: readonly Adopted[]): Html {
  const shown = data.slice(0, MAX_CHANGES);
  const left =
    data.length > shown.length
      ? html`<p class="hint">${data.length - shown.length} older changes are not shown.</p>`
      : null;
  return html`<section class="card flush" aria-labelledby="now"><h2 id="now">Now</h2>${table('Producers of now', PRODUCERS, newest.producers)}</section>
<section class="card" aria-labelledby="changes"><h2 id="changes">Every change, the newest first</h2><ul>${shown.map((each) => html`<li>${sayProducers(each)}</li>`)}</ul>${left}</section>`;
}

const PRODUCERS = [
  ['Producer', ({ address }: Adopted['producers'][number]) => outside(address)],
  [
    'Signs with',
    ({ address, signer }: Adopted['producers'][number]) => (signer === address ? 'its own key' : outside(signer)),
  ],
] as const;
