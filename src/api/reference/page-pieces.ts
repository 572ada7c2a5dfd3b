import { type Html, html } from '../../web/html.ts';
import { PROBLEMS } from '../../web/problem.ts';
import { nameOf, type Parameter, type Schema } from './api-document.ts';

/** A text of the document, where code stands in backticks. */
export function prose(text = ''): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`;
}

/** The members of an object, each with its type and meaning. */
export function fieldList({ properties = {}, required = [] }: Schema): Html {
  const rows = Object.entries(properties).map(([name, schema]) =>
    row(name, describeValue(schema, `${required.includes(name) ? '' : ', optional'}`)),
  );
  return html`<dl>${rows}</dl>`;
}

export function parameterList(parameters: readonly Parameter[]): Html {
  const rows = parameters.map(({ name, in: place, required, description, schema }) =>
    row(name, describeValue({ ...schema, description }, `, in ${place}${required === true ? '' : ', optional'}`)),
  );
  return html`<dl>${rows}</dl>`;
}

function row(name: string, value: Html): Html {
  return html`<dt><code>${name}</code></dt><dd>${value}</dd>
`;
}

/** The type, the meaning, and the members of an object that has no name of its own. */
export function describeValue(schema: Schema, more = ''): Html {
  const { properties, required } = schema.items ?? schema;
  const members = properties === undefined ? null : fieldList({ properties, required });
  return html`<i>${typeOf(schema)}${more}</i> ${prose(schema.description)}${members}`;
}

function typeOf({ $ref, const: only, anyOf, items, type, format, minimum, maximum, default: usual }: Schema): Html {
  if ($ref !== undefined) return html`<a href="#${nameOf($ref)}">${nameOf($ref)}</a>`;
  if (only !== undefined) return html`<code>${only}</code>`;
  if (anyOf !== undefined) return anyOf.map(typeOf).reduce((before, each) => html`${before} or ${each}`);
  if (items !== undefined) return html`array of ${typeOf(items)}`;
  const bounds = maximum === undefined ? '' : `, ${minimum} to ${maximum}`;
  return html`${format ?? type ?? ''}${bounds}${usual === undefined ? '' : `, ${usual} if left out`}`;
}

/** `INVALID_JSON, INVALID_REQUEST`: each leads to its error and says what that is. */
export function problemLinks(codes: string): Html {
  const problems = PROBLEMS as Readonly<Record<string, { title: string }>>;
  return codes
    .split(', ')
    .map((code) => html`<a href="/docs/errors#${code}">${code}</a> ${problems[code]?.title ?? ''}`)
    .reduce((before, each) => html`${before}<br>${each}`);
}
