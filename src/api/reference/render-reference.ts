import { betweenTags, type Html, html } from '../../web/html.ts';
import {
  APART,
  type ApiDocument,
  groupOperations,
  nameOf,
  type Operation,
  resolveSchema,
  type Schema,
} from './api-document.ts';
import { LANGUAGES } from './code-examples.ts';
import { API_KEY, exampleRequest } from './example-request.ts';
import { describeValue, fieldList, parameterList, problemLinks, prose } from './page-pieces.ts';
import { RECEIVER_RULES } from './receiver-rules.ts';
import { renderDocument } from './render-document.ts';

/** The page of the API: every operation with a program in each language, every webhook, object and error. */
export function renderReference(document: ApiDocument): string {
  const [groups, [apart]] = divide(document);
  const events = eventsOf(document).map(({ name }) => name);
  const others = Object.keys(objectsOf(document, apart === undefined ? [] : [apart]));
  const objects = Object.entries(document.components.schemas).filter(
    ([name]) => ![...events, ...others].includes(name),
  );
  const main = html`${renderStart(document)}
${renderGroups(document, groups)}
${renderWebhooks(document)}
<h2 id="objects">Objects</h2>
${objects.map(([name, schema]) => renderObject(name, html`${name}`, schema))}`;
  const more = html`${apart === undefined ? null : html`<li><a href="/docs/${APART}">${apart.tag.description}</a></li>`}<li><a href="#webhooks">Webhooks</a></li><li><a href="#objects">Objects</a></li>`;
  return renderDocument(`${document.info.title} API`, main, renderContents(groups, more));
}

/** The page of the operations that stand apart, with their objects. */
export function renderApart(document: ApiDocument): string {
  const [, groups] = divide(document);
  const objects = Object.entries(objectsOf(document, groups));
  const main = html`${renderStart(document)}
${renderGroups(document, groups)}
<h2 id="objects">Objects</h2>
${objects.map(([name, schema]) => renderObject(name, html`${name}`, schema))}`;
  const more = html`<li><a href="#objects">Objects</a></li><li><a href="/docs">All of the API</a></li>`;
  return renderDocument(
    `${document.info.title} API: ${groups[0]?.tag.description}`,
    main,
    renderContents(groups, more),
  );
}

type Group = ReturnType<typeof groupOperations>[number];

/** What stands on the page of the API, and what stands apart. */
function divide(document: ApiDocument): [Group[], Group[]] {
  const groups = groupOperations(document);
  return [groups.filter(({ tag }) => tag.name !== APART), groups.filter(({ tag }) => tag.name === APART)];
}

/** The objects with a name that operations take and answer when all is well. */
function objectsOf({ components }: ApiDocument, groups: readonly Group[]): Record<string, Schema> {
  const named = groups.flatMap(({ operations }) =>
    operations.flatMap(({ details: { requestBody, responses } }) =>
      [requestBody, ...Object.values(responses)].flatMap(
        (each) => each?.content?.['application/json']?.schema.$ref ?? [],
      ),
    ),
  );
  return Object.fromEntries(named.map((reference) => [nameOf(reference), components.schemas[nameOf(reference)] ?? {}]));
}

function renderContents(groups: readonly Group[], more: Html): Html {
  return html`<nav aria-label="Contents"><ul>
${groups.flatMap((group) =>
  group.operations.map(({ details }) => html`<li><a href="#${details.operationId}">${details.summary}</a></li>`),
)}
${more}<li><a href="/docs/errors">Errors</a></li>
</ul></nav>`;
}

function renderGroups(document: ApiDocument, groups: readonly Group[]): Html {
  return html`${groups.map(({ tag: { name, description }, operations }) => {
    return html`<h2 id="${name}">${description}</h2>${operations.map((each) => renderOperation(document, each))}`;
  })}`;
}

function renderStart({ info, servers }: ApiDocument): Html {
  const choices = LANGUAGES.map(
    ({ id, name }, index) =>
      html`<label><input type="radio" name="language" id="in-${id}"${index === 0 ? html` checked` : null}> ${name}</label>`,
  );
  return html`<p>${prose(info.description)}</p>
<p>Your <strong>server</strong> calls <code>${servers[0].url}</code> with the secret key of your project in the header <code>X-Api-Key</code>, which must have the <i>scope</i> of an operation; the examples take it from the variable <code>${API_KEY.variable}</code>. A browser never calls this API. Whatever is not called <i>optional</i> is always there.</p>
<p>For programs: <a href="/openapi.json">OpenAPI 3.1</a>, <a href="/docs/postman.json">Postman collection</a>, <a href="/llms.txt">llms.txt</a>.</p>
<fieldset><legend>Examples in</legend>${choices}</fieldset>`;
}

function renderOperation(document: ApiDocument, operation: Operation): Html {
  const { method, path, details } = operation;
  const { operationId, summary, description, parameters = [], requestBody, responses, security } = details;
  const request = exampleRequest(document, operation);
  const programs = LANGUAGES.map(({ id, name, write }) => {
    return html`<figure class="${id}"><figcaption>${name}</figcaption><pre><code>${betweenTags(write(request))}</code></pre></figure>`;
  });
  const body = requestBody && resolveSchema(document, requestBody.content['application/json'].schema);
  const answers = Object.entries(responses).map(([status, { description: codes, content }]) => {
    const schema = content?.['application/json']?.schema;
    return html`<dt>${status}</dt><dd>${schema === undefined ? problemLinks(codes) : describeValue(schema)}</dd>`;
  });
  return html`<h3 id="${operationId}">${summary}</h3>
<p><code class="route"><b>${method}</b> ${path}</code> scope <code>${security?.[0]?.apiKey[0] ?? ''}</code></p>
${paragraph(description)}${programs}
${parameters.length === 0 ? null : html`<h4>Parameters</h4>${parameterList(parameters)}`}
${body === undefined ? null : html`<h4>Body</h4>${fieldList(body)}`}
<h4>Answers</h4><dl>${answers}</dl>
`;
}

function renderWebhooks(document: ApiDocument): Html {
  const events = eventsOf(document);
  const { properties, required } = events[0]?.schema ?? {};
  const common = {
    ...properties,
    type: { type: 'string' },
    data: { type: 'object', description: 'Of each type its own' },
  };
  return html`<h2 id="webhooks">Webhooks</h2>
<p>A signed <code>POST</code> to your server for every change, in the format of Standard Webhooks.</p>
<ol>${RECEIVER_RULES.map((rule) => html`<li>${prose(rule)}</li>`)}</ol>
<h3 id="event">What every event has</h3>
${fieldList({ properties: common, required })}
${events.map(({ type, name, schema }) =>
  renderObject(name, html`<code>${type}</code>`, { ...schema.properties?.['data'], description: schema.description }),
)}`;
}

function eventsOf({ webhooks, components }: ApiDocument) {
  return Object.entries(webhooks).map(([type, { post }]) => {
    const name = nameOf(post.requestBody.content['application/json'].schema.$ref ?? '');
    return { type, name, schema: components.schemas[name] ?? {} };
  });
}

function renderObject(id: string, heading: Html, schema: Schema): Html {
  return html`<h3 id="${id}">${heading}</h3>
${paragraph(schema.description)}${fieldList(schema)}`;
}

function paragraph(text: string | undefined): Html | null {
  return text === undefined ? null : html`<p>${prose(text)}</p>`;
}
