import type { ActionName } from '../../operator/actions.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { type Html, html } from '../../web/html.ts';
import { describeMistake } from './layout.ts';
import { type Column, field, keepProject, liveNone, liveRows, number, pager, select, table } from './pieces.ts';
import type { Routes } from './routes.ts';
import { type Fields, needProject, urlTo, type Visit } from './visit.ts';

/** If `isShown` returns false, the page doesn't show the filter, and a request that uses it fails because the visitor lacks the right. */
type Filter = { name: string; label: string; isShown?(visit: Visit): boolean } & (
  | { options: readonly (readonly [string, string])[] }
  | { more?: Html | undefined }
);
/** The next page begins before `next`. `looked` is how many rows this page compared with the filters. */
type Found<Row> = { data: readonly Row[]; next: string | null; looked?: number };

/** A page that lists rows, newest first, with filters above and a link to older ones below. */
export type List<Row> = {
  path: string;
  action: ActionName;
  title: string;
  /** The plural for use in sentences, such as `requests`. */
  noun: string;
  pageSize: number;
  columns: readonly Column<Row>[];
  filters: readonly Filter[];
  /** Throws `INVALID_ARGUMENT`, which is shown above the filters. */
  find(visit: Visit, project: ListedProjectView, filters: Fields, before: string | undefined): Promise<Found<Row>>;
  none(visit: Visit, project: ListedProjectView, isFiltered: boolean): Html;
  beside?(visit: Visit, project: ListedProjectView): Html | null;
  below?(visit: Visit, project: ListedProjectView, filters: Fields): Html;
};

export function addList<Row>({ get }: Routes, list: List<Row>): void {
  const { path, title, noun } = list;
  const names = list.filters.map(({ name }) => name);
  get(path, list.action, ['project', 'before', ...names], async ({ visit, query }) => {
    const { project: asked, before, ...filters }: Fields = query;
    const project = needProject(visit, asked);
    const isFiltered = Object.keys(filters).length > 0;
    const page = { title, about: project, beside: list.beside?.(visit, project) ?? null };
    const above = renderFilters(visit, project, list, filters);
    const found = await list.find(visit, project, filters, before).catch(describeMistake);
    if (!('data' in found)) return { ...page, problem: found, main: above };
    const { data, next, looked = 0 } = found;
    if (data.length === 0 && next === null)
      return {
        ...page,
        main: html`${above}${liveNone(list.none(visit, project, isFiltered || before !== undefined))}`,
      };
    const none = html`<p>No match in these ${number(looked)} ${noun}.</p>`;
    const rows = data.length === 0 ? none : table(`${title}, newest first`, list.columns, data);
    const further = data.length < list.pageSize ? `Search more: ${number(looked)} searched so far` : `Older ${noun}`;
    const urlOf = (query: Fields) => urlTo(visit, path, project, { ...filters, ...query });
    const pages = { older: next && urlOf({ before: next }), newest: before === undefined ? null : urlOf({}) };
    const below = list.below?.(visit, project, filters) ?? html``;
    return { ...page, main: html`${above}${liveRows(title, rows)}\n${pager({ ...pages, text: further }, below)}` };
  });
}

function renderFilters(
  visit: Visit,
  project: ListedProjectView,
  { path, filters }: Pick<List<unknown>, 'path' | 'filters'>,
  filled: Fields,
): Html {
  const isOpen = Object.keys(filled).length > 0;
  const shown = filters
    .filter(({ isShown }) => isShown?.(visit) !== false)
    .map((each) =>
      'options' in each
        ? html`${select(each.name, each.label, each.options, filled[each.name])}\n`
        : html`${field(each.name, each.label, filled[each.name], each.more)}\n`,
    );
  return html`<details class="card filters"${isOpen ? html` open` : null}><summary>Filter</summary><form action="${path}" method="get">${keepProject(visit, project)}
${shown}<div class="actions"><button>Show</button>${isOpen ? html`<a href="${urlTo(visit, path, project)}">Show all</a>` : null}</div></form></details>`;
}

const options = (texts: readonly string[], shown = (text: string) => text) => [
  ['', 'any'] as const,
  ...texts.map((text) => [text, shown(text)] as const),
];
export const by = {
  choice: (name: string, label: string, texts: readonly string[], shown?: (text: string) => string): Filter => ({
    ...{ name, label, options: options(texts, shown) },
  }),
  line: (name: string, label: string, more?: Html): Filter => ({ name, label, more }),
  days: [
    { name: 'from', label: 'From day', more: html` type="date"` },
    { name: 'to', label: 'To day', more: html` type="date"` },
  ] as const,
};
