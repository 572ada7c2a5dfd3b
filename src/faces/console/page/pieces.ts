import type { InvoiceStatus } from '../../../core/domain/invoice.ts';
import { asSum } from '../../../core/domain/money.ts';
import { shorten } from '../../operator/input/problems.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import type { Visit } from './visit.ts';

/** Amounts, addresses and ids read from left to right within any text. */
export function ltr(text: string | number): Html {
  return html`<bdi dir="ltr">${text}</bdi>`;
}

/** Shows a sum, which may be negative. If it doesn't fit, it breaks before the decimal point. */
export function money(amount: string): Html {
  const [whole = '', decimals = ''] = asSum(amount).split('.');
  return html`<bdi dir="ltr" class="money">${whole}<wbr><small>.${decimals}</small></bdi>`;
}

export function number(value: number): string {
  return asSum(String(value));
}

/** Shows a time in UTC to the minute, because the books are in UTC. */
export function time(iso: string): Html {
  const shown = `${iso.slice(0, 10)} ${iso.slice(11, 16)}`;
  return html`<time datetime="${iso}" title="${iso.slice(0, 19).replace('T', ' ')} UTC">${shown}</time>`;
}

/** Returns a text such as `34 s`, `3 min`, `5 h`, `12 days`. */
export function duration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} days`;
}

/** Shows text from outside, which may have any direction and length. */
export function outside(text: string, length = 80): Html {
  return html`<bdi>${shorten(text, length)}</bdi>`;
}

/** This is enough to tell addresses apart, but not enough to pay to one, because no one should copy an address from a list. */
export function shortAddress(address: string): Html {
  return html`<bdi dir="ltr" class="mono" title="${address}">${address.slice(0, 5)}…${address.slice(-5)}</bdi>`;
}

const STATES: Record<InvoiceStatus, string> = {
  PENDING: 'Waiting',
  CONFIRMING: 'Confirming',
  EXPIRED: 'Expired',
  PAID: 'Paid',
};

/** Shows a text in the colour of an invoice's state. */
export function badge(text: Html | string | number, colour: InvoiceStatus): Html {
  return html`<span class="badge" data-state="${colour}">${text}</span>`;
}

export type Badge = readonly [...Parameters<typeof badge>];

export const invoiceBadge = (status: InvoiceStatus) => badge(STATES[status], status);

/** Renders the link in a row's first cell. */
export const rowLink = (url: string, text: Html | string) => html`<a class="row" href="${url}">${text}</a>`;

/** Renders a figure with its name and a hint. */
export function tile(name: string, figure: Html | string, hint: Html | string): Html {
  return html`<div class="tile"><dt>${name}</dt><dd>${figure}</dd><dd class="hint">${hint}</dd></div>`;
}

/** Returns a text such as `1 key` or `2 keys`. */
export function many(count: number, one: string, several = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : several}`;
}

/** The script makes the button visible. */
export function copyButton(text: string, label: string): Html {
  return html`<button type="button" class="quiet copy" data-copy="${text}" aria-label="${label}" hidden>${label.startsWith('Copy link') ? 'Copy link' : 'Copy'}</button>`;
}

export type Column<Row> = readonly [name: string, cell: (row: Row) => Html | string, kind?: 'number'];

/**
 * Renders a table that narrow screens show as cards. Its roles are repeated, because those styles remove them. A row's first cell holds its
 * link; the keys `j` and `k` move through these links.
 */
export function table<Row>(caption: string, columns: readonly Column<Row>[], rows: readonly Row[]): Html {
  const heads = columns.map(([name, , kind]) => html`<th role="columnheader" scope="col"${kindOf(kind)}>${name}</th>`);
  const body = rows.map((row) => {
    const cells = columns.map(
      ([name, cell, kind]) =>
        html`<td role="cell" data-label="${name}"${kindOf(kind)}><span>${content(cell(row))}</span></td>`,
    );
    return html`<tr role="row">${cells}</tr>`;
  });
  return html`<table role="table" class="list"><caption class="unseen">${caption}</caption><thead role="rowgroup"><tr role="row">${heads}</tr></thead><tbody role="rowgroup">${body}</tbody></table>`;
}

const content = (cell: Html | string) => html`${cell}`;
const kindOf = (kind: 'number' | undefined) => (kind === undefined ? null : html` class="number"`);

/** A part of a page that is kept up to date. With `isSpoken`, screen readers announce changes. */
export function live(id: string, content: Html, { isSpoken = false } = {}): Html {
  return html`<div id="${id}" data-live${isSpoken ? html` aria-live="polite"` : null}>${content}</div>`;
}

/** A list whose rows are kept up to date. Newer rows are announced, but don't push the list down. */
export function liveRows(label: string, content: Html): Html {
  return html`<section class="card flush" id="rows" data-live="rows" aria-label="${label}">${content}</section>`;
}

/** Renders such a list while it's empty. Its first rows are announced too. */
export function liveNone(content: Html): Html {
  return html`<div id="rows" data-live="rows">${content}</div>`;
}

/** Renders a list of names and values. */
export function facts(entries: readonly (readonly [name: string, value: Html | string | null])[]): Html {
  const shown = entries.flatMap(([name, value]) =>
    value === null ? [] : [html`<dt>${name}</dt><dd>${content(value)}</dd>`],
  );
  return html`<dl class="facts">${shown}</dl>`;
}

/** Keeps the chosen project in a form that is sent with GET. */
export function keepProject({ projects }: Visit, project: ListedProjectView | null): Html | null {
  return projects.length > 1 && project !== null ? hidden('project', project.projectId) : null;
}

export const hidden = (name: string, value: string) => html`<input type="hidden" name="${name}" value="${value}">`;

/** Links to the parts of a list, such as its states. `here` is the part that the page shows. */
export function tabs<Part extends string>(
  label: string,
  names: Readonly<Record<Part, string>>,
  here: Part,
  urlOf: (part: Part) => string,
): Html {
  const links = (Object.keys(names) as Part[]).map((part) => {
    return html`<li><a href="${urlOf(part)}"${part === here ? html` aria-current="true"` : null}>${names[part]}</a></li>`;
  });
  return html`<nav aria-label="${label}"><ul class="tabs">${links}</ul></nav>`;
}

type Pages = { older: string | null; text: string; newest: string | null; newestText?: string };

/** Links to the next page and back to the first one. */
export function pager({ older, text, newest, newestText = 'Newest' }: Pages, ...more: Html[]): Html {
  const next = older && html`<a class="button quiet" rel="next" href="${older}">${text}</a>`;
  return html`<div class="pager">${next}${newest && html`<a href="${newest}">${newestText}</a>`}${more}</div>`;
}

/** Shows a problem above its form, and moves the focus of screen readers to it. */
export function alert(text: Html): Html {
  return html`<div class="notice" role="alert">${text}</div>`;
}

export function select(
  name: string,
  label: string,
  options: readonly (readonly [string, string])[],
  chosen: string | undefined,
): Html {
  const list = options.map(
    ([value, text]) =>
      html`<option value="${value}"${value === (chosen ?? '') ? html` selected` : null}>${text}</option>`,
  );
  return html`<div><label for="${name}">${label}</label><select id="${name}" name="${name}">${list}</select></div>`;
}

export function field(name: string, label: string, value: string | undefined, more: Html = html``, hint?: string) {
  const described = hint === undefined ? null : html` aria-describedby="${name}-hint"`;
  const below = hint === undefined ? null : html`<p class="hint" id="${name}-hint">${hint}</p>`;
  return html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value ?? ''}" autocomplete="off"${described}${more}>${below}</div>`;
}
