import { POLICIES, TAIL_DECIMALS } from '../../domain/policy.ts';
import { isAllowed } from '../../operator/authorize.ts';
import type { Settings, UpdatedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Page } from '../page/layout.ts';
import { alert, duration, facts, ltr, number, outside, time } from '../page/pieces.ts';
import { urlTo, type Visit } from '../page/visit.ts';
import { previewFrame } from './preview.ts';

/** `said`: what came of a form. */
type Shown = Settings & { said: Html | null };

/** The settings of a project in words, and the payer's page beside them. */
export function projectPage(visit: Visit, { view, logo, said }: Shown): Page {
  const mayChange = isAllowed(visit.actor, 'updateProject');
  const change = (path: string, text: string) =>
    mayChange ? html`<p><a class="button quiet" href="${urlTo(visit, path, view)}">${text}</a></p>` : null;
  return {
    ...{ title: 'Project', about: view, isFraming: true },
    main: html`${said}${view.archivedAt === null ? null : html`<p class="notice">Archived since ${time(view.archivedAt)}: it takes no new invoices.</p>`}<div class="pair"><div>
<section class="card" aria-labelledby="look"><h2 id="look">What payers see</h2>${facts([
      ['Name', outside(view.name, 200)],
      ['Help', view.supportContact === null ? NONE : outside(view.supportContact, 200)],
      ['Way back', view.returnUrl === null ? NONE : outside(view.returnUrl, 200)],
      ['Shown in frames of', view.embedOrigins === null ? NONE : outside(view.embedOrigins, 200)],
      ['Colour', view.accent === null ? NONE : html`${swatch(view.accent)} ${ltr(view.accent)}`],
      ['Logo', logo === null ? NONE : html`${logo.type.slice('image/'.length)}, ${number(logo.content.length)} bytes`],
    ])}${change('/settings/project/look', 'Change what payers see')}</section>
<section class="card" aria-labelledby="rules"><h2 id="rules">How invoices are made</h2>${facts([
      ['Network', html`${view.network}, for life`],
      ['Told apart by', describePolicy(view)],
      ['An invoice waits', duration(view.lifetimeMs)],
      ['Unpaid of 30 minutes', describeLimit(view.maxUnpaid)],
      ['Unpaid of a minute', describeLimit(view.maxUnpaidPerMinute)],
      ['Addresses', html`${describeAddresses(view)} <a href="${urlTo(visit, '/addresses', view)}">Addresses</a>`],
      ['Project id', ltr(view.projectId)],
    ])}${change('/settings/project/rules', 'Change how invoices are made')}${view.archivedAt === null ? change('/settings/project/archive', 'Archive the project') : change('/settings/project/unarchive', 'Put the project back')}</section></div>
${previewFrame(visit, view)}</div>`,
  };
}

const NONE = html`<span class="hint">none</span>`;

/** Styles of an element are not allowed; attributes of a picture are. */
function swatch(accent: string): Html {
  return html`<svg aria-hidden="true" width="16" height="16"><rect width="16" height="16" rx="4" fill="${accent}"/></svg>`;
}

function describePolicy({ policy, maxSurcharge }: Settings['view']): string {
  return policy === 'exact'
    ? 'an address for each invoice of an amount; nothing is added (exact)'
    : `up to ${TAIL_DECIMALS[policy]} decimals, less than ${trimmed(maxSurcharge)} USDT added to the amount (${policy})`;
}

const describeLimit = (most: number | null) => (most === null ? 'any number' : `at most ${number(most)} invoices`);

/** `0.010000` → `0.01`. */
export function trimmed(amount: string): string {
  return amount.replace(/\.?0+$/, '');
}

export function describeAddresses({ activeAddresses: active }: Pick<Settings['view'], 'activeAddresses'>) {
  return `${POLICIES.map((policy) => `${number(active[policy])} of policy ${policy}`).join(', ')}.`;
}

/** How many invoices are payable, whatever is changed. */
export function describeOpen({ count, isAll }: Settings['open']): Html {
  const of = isAll ? null : html` of the newest 10,000`;
  if (count === 0) return html`No invoice${of} is open.`;
  if (count === 1) return html`One open invoice${of} stays payable as it is, with its amount, address and time.`;
  return html`${number(count)} open invoices${of} stay payable as they are, with their amounts, addresses and times.`;
}

/** By the names that changes have. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ name: 'Name', supportContact: 'Help', returnUrl: 'Way back', embedOrigins: 'Shown in frames of' },
  ...{ accent: 'Colour', logoId: 'Logo' },
  ...{ policy: 'Policy', maxSurcharge: 'Most that is added', lifetimeMs: 'An invoice waits' },
  ...{ maxUnpaid: 'Unpaid of 30 minutes', maxUnpaidPerMinute: 'Unpaid of a minute' },
};
const OF_PAYERS = ['name', 'supportContact', 'returnUrl', 'embedOrigins', 'accent', 'logoId'];

/** What was changed, from what to what, and from when on it holds. */
export function describeChanges(visit: Visit, updated: UpdatedProjectView): Html {
  const { changed, policy, activeAddresses } = updated;
  const names = Object.keys(changed);
  if (names.length === 0) return html`<p class="good" role="status">Nothing changed: it is so already.</p>`;
  const list = facts(
    Object.entries(changed).map(([name, { from, to }]) => [
      NAMES[name] ?? name,
      html`${showValue(name, from)} → ${showValue(name, to)}`,
    ]),
  );
  const isSeen = names.some((name) => OF_PAYERS.includes(name));
  const isOfNew = names.some((name) => !OF_PAYERS.includes(name));
  const isStuck = changed['policy'] !== undefined && activeAddresses[policy] === 0;
  return html`<div class="good" role="status"><p>The project was changed.</p>${list}${isSeen ? html`<p>Payers see it on every page that is opened from now on.</p>` : null}${isOfNew ? html`<p>New invoices follow it within ten seconds; those that there are stay as they are.</p>` : null}</div>
${isStuck ? alert(html`<p>The project has no address of the policy ${policy}, so every new invoice is refused. <a href="${urlTo(visit, '/addresses/add', updated)}">Add addresses</a></p>`) : null}`;
}

function showValue(name: string, value: string | number | null): Html | string {
  if (value === null) return 'none';
  if (name === 'lifetimeMs') return duration(Number(value));
  return outside(String(value), 200);
}
