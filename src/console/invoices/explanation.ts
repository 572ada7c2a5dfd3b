import type { Text } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import type { TimelineEntry } from '../../domain/timeline.ts';
import { describeStep, type Explanation, printableText } from '../../operator/explain/explanation.ts';
import { printable } from '../../operator/input/printable.ts';
import { type Html, html } from '../../web/html.ts';
import { copyButton, facts } from '../page/pieces.ts';
import { renderText, writeText } from '../page/words.ts';

/** The answer in sentences, the most important one first and large. */
export function renderVerdict({ verdict }: Explanation): Html {
  const [first = '', ...others] = verdict;
  const more = others.map((text) => html`<li>${renderText(readable(printableText(text)))}</li>`);
  return html`<section class="card verdict" aria-label="Answer"><p class="first" dir="auto">${renderText(readable(printableText(first)))}</p>${others.length === 0 ? null : html`<ul>${more}</ul>`}</section>`;
}

export function renderFields({ fields }: Explanation): Html {
  return html`<section class="card" aria-labelledby="facts"><h2 id="facts">Facts</h2>${facts(fields.map(([name, value]) => [name, value === null ? null : html`<bdi>${readable(printable(value))}</bdi>`]))}</section>`;
}

export function renderNext({ next }: Explanation): Html | null {
  if (next.length === 0) return null;
  const items = next.map((step) => html`<li>${renderText(describeStep(step))}</li>`);
  return html`<section class="card" aria-labelledby="next"><h2 id="next">What to do</h2><ul>${items}</ul></section>`;
}

/** What happened, in order. `act` is what can be done about an entry. */
export function renderTimeline({ timeline, omissions }: Explanation, act: (entry: TimelineEntry) => Html | null): Html {
  const items = timeline.map((entry) => {
    const { at, kind, text } = entry;
    const iso = toIso(at);
    return html`<li data-kind="${kind}"><time datetime="${iso}">${iso.slice(0, 10)} <b>${iso.slice(11, 19)}</b></time><div><p><span class="kind">${kind}</span> <bdi>${readable(printable(text))}</bdi></p>${renderDetails(entry)}${act(entry)}</div></li>`;
  });
  const left = omissions.map(
    ({ what, shown, total }) => html`<p class="hint">Not shown: ${total - shown} more of ${total} ${what}.</p>`,
  );
  return html`<section class="card" aria-labelledby="timeline"><h2 id="timeline">What happened <small>UTC</small></h2><ol class="timeline">${items}</ol>${left}</section>`;
}

/** Evidence that is seldom wanted. */
const FOLDED: ReadonlySet<TimelineEntry['kind']> = new Set([
  'requested',
  'allocated',
  'sighted',
  'transferred',
  'sent',
]);

function renderDetails({ kind, details }: TimelineEntry): Html | null {
  if (details.length === 0) return null;
  const list = html`<ul class="hint">${details.map((detail) => html`<li><bdi>${readable(printable(detail))}</bdi></li>`)}</ul>`;
  return FOLDED.has(kind) ? html`<details><summary>Evidence</summary>${list}</details>` : list;
}

/** For a public tracker: what happened without whom it happened to. */
export function renderSupport(explanation: Explanation, requestId: string): Html {
  const text = supportText(explanation, requestId);
  return html`<details class="card"><summary>Copy for support</summary><p class="hint">Addresses, transactions, order ids, links and names are cut or left out, so that it can be sent to strangers. Read it before you send it.</p>${copyButton(text, 'Copy the text for support')}<label class="unseen" for="support">Text for support</label><textarea id="support" readonly rows="12">${text}</textarea></details>`;
}

/** Entries of operators begin with a name, and tell of notes. */
const OF_PEOPLE: ReadonlySet<TimelineEntry['kind']> = new Set(['operator', 'resolved', 'taken-back']);

function supportText({ subject, verdict, timeline }: Explanation, requestId: string): string {
  const lines = timeline.map(({ at, kind, text }) => `${toIso(at)} ${kind}${OF_PEOPLE.has(kind) ? '' : `: ${text}`}`);
  const said = verdict.map((text) => printable(writeText(text)));
  const whole = [...said, '', ...lines.map(printable), '', `request ${requestId}`].join('\n');
  return LENGTHS.reduce((text, length) => text.replaceAll(start(subject['externalId'], length), '(order)'), whole)
    .replace(/https?:\/\/[^\s:]+(:\d+)?[^\s:]*/g, '(link)')
    .replace(/\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g, (address) => `T…${address.slice(-4)}`)
    .replace(/\b[0-9a-f]{64}\b/g, (id) => `${id.slice(0, 6)}…`)
    .replace(/\b(trf|evt|inv|whe|key|prj)_([0-9a-z]{22})([0-9a-z]{4})\b/g, '$1_…$3');
}

/** Texts cut order ids to these lengths. */
const LENGTHS = [200, 80, 60];

function start(externalId: unknown, length: number): string {
  return typeof externalId === 'string' && externalId !== ''
    ? printable([...externalId].slice(0, length).join(''))
    : '(order)';
}

/** Times within sentences, as people write them. */
function readable<Said extends Text>(text: Said): Said | string {
  return typeof text === 'string' ? text.replace(ISO, '$1 $2 UTC') : text;
}

const ISO = /\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{3}Z\b/g;
