import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Constant, constantText, readAsset, sendCompressed } from '../../web/assets.ts';
import { betweenTags, type Html, html, rawHtml } from '../../web/html.ts';
import { PROBLEMS } from '../../web/problem.ts';
import {
  type ApiDocument,
  nameOf,
  type Operation,
  type Parameter,
  resolveSchema,
  type Schema,
} from './api-document.ts';
import { API_KEY, type ExampleRequest, exampleRequest, type Secret } from './example-request.ts';

/**
 * `read` returns the content of `/openapi.json`, as a new object whenever it has changed. `limit` throws if a client sends too many
 * requests.
 */
type ReferenceDeps = { read(): ApiDocument; limit(request: FastifyRequest): void };

/**
 * Registers `GET /docs`, `/docs/webhook-endpoints`, `/docs/errors`, `/docs/postman.json` and `/llms.txt`. All are generated from the API
 * document.
 */
export function registerReference(app: FastifyInstance, { read, limit }: ReferenceDeps): void {
  const serve = (path: string, type: string, write: (document: ApiDocument) => string) => {
    let written: { of: ApiDocument; content: Constant } | null = null;
    app.get(path, { schema: { hide: true } }, async (request, reply) => {
      limit(request);
      const document = read();
      if (written?.of !== document) written = { of: document, content: constantText(write(document)) };
      reply.type(`${type}; charset=utf-8`).header('Cache-Control', 'no-cache');
      if (type === 'text/html') reply.header('Content-Security-Policy', POLICY);
      return sendCompressed(request, reply, written.content);
    });
  };
  serve('/docs', 'text/html', renderReference);
  serve(`/docs/${APART}`, 'text/html', renderApart);
  serve('/docs/errors', 'text/html', renderErrors);
  serve('/docs/postman.json', 'application/json', writePostman);
  serve('/llms.txt', 'text/plain', writeLlms);
}

/** Returns a summary for programs that read on behalf of a developer, in the format of llmstxt.org. */
function writeLlms(document: ApiDocument): string {
  const { info, servers } = document;
  const [{ url }] = servers;
  const operations = groupOperations(document).flatMap((group) => group.operations);
  const create = operations.find(({ details }) => details.operationId === 'createInvoice');
  const body = create === undefined ? null : exampleRequest(document, create).body;
  return `# ${info.title}

> Self-hosted, non-custodial invoicing for USDT on TRON. Your server creates an invoice and sends the payer to its page; it is PAID when the exact transfer is irreversible.

Every request below \`${url}\` has a project's secret key in the header \`X-Api-Key\`. Keep the key on your server: never call this API from a browser.

- Create an invoice: \`POST /v1/invoices\` with the headers \`Content-Type: application/json\` and \`Idempotency-Key\`, which you choose and store for each order attempt, and the body \`${body}\`. \`amount\` is a decimal string. \`externalId\` is your own id for the attempt, unique in the project. \`201\` is the only success: store \`invoiceId\`, and send the payer to \`checkoutUrl\`. If there is no response, and after \`429\` and \`5xx\`, send the same request again with the same key: it creates no second invoice.
- Read an invoice: \`GET /v1/invoices/{invoiceId}\`. Fulfil only if \`status\` is \`PAID\` and \`externalId\` is the id that you stored. \`CONFIRMING\` is not paid yet; \`EXPIRED\` can still be paid.
- Amounts are exact: never round them, and never accept a partial payment. \`GET /v1/transfers\` lists the transfers that paid no invoice.
- Errors are \`application/problem+json\`. Base your decisions on \`code\`.

Rules for a receiver of webhooks:

${RECEIVER_RULES.map((rule, index) => `${index + 1}. ${rule}`).join('\n')}

## Reference

- [Reference](${url}/docs): every operation with curl, JavaScript, Python, PHP, Go and Java; webhooks, objects, errors
- [OpenAPI 3.1](${url}/openapi.json): the same in machine-readable form
- [Postman collection](${url}/docs/postman.json): every operation, ready to use
- [Errors](${url}/docs/errors): the meaning of each code, and what to do

## Operations

${operations.map((each) => `- [${each.method} ${each.path}](${url}${placeOf(each)}): ${each.details.summary}`).join('\n')}
`;
}

const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/**
 * Returns a Postman collection (v2.1) of every operation. The collection is ready to use as soon as its variable `QUITTANCE_API_KEY` is
 * set.
 */
function writePostman(document: ApiDocument): string {
  const { info, servers } = document;
  const folders = groupOperations(document).map(({ tag, operations }) => ({
    name: tag.name,
    description: tag.description,
    item: operations.map((operation) => writeItem(document, operation)),
  }));
  return JSON.stringify({
    info: { name: `${info.title} API`, description: info.description, schema: SCHEMA },
    variable: [
      { key: 'QUITTANCE_URL', value: servers[0].url, type: 'string' },
      { key: API_KEY.variable, value: '', type: 'secret' },
    ],
    auth: {
      type: 'apikey',
      apikey: [
        { key: 'key', value: 'X-Api-Key', type: 'string' },
        { key: 'value', value: `{{${API_KEY.variable}}}`, type: 'string' },
        { key: 'in', value: 'header', type: 'string' },
      ],
    },
    item: folders,
  });
}

/** Postman replaces this with a new UUID each time a request is sent. */
const FRESH = '{{$guid}}';

/** An order id can be used only once, so the example's id would be refused from the second request on. */
function refresh(body: string): string {
  const input = JSON.parse(body) as Record<string, unknown>;
  return JSON.stringify(
    typeof input['externalId'] === 'string' ? { ...input, externalId: `order-${FRESH}` } : input,
    null,
    2,
  );
}

function writeItem(document: ApiDocument, operation: Operation) {
  const { summary, description = summary, parameters = [] } = operation.details;
  const { method, url, headers, body } = exampleRequest(document, operation);
  const of = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      // Postman would send parameters that have no value as empty.
      .map(({ name, example, description: meaning }) =>
        example === undefined
          ? { key: name, value: '', description: meaning, disabled: true }
          : { key: name, value: String(example), description: meaning },
      );
  // Postman writes `:invoiceId` for `{invoiceId}`.
  const path = operation.path
    .slice(1)
    .replaceAll(/\{(\w+)\}/g, ':$1')
    .split('/');
  return {
    name: summary,
    request: {
      method,
      description,
      // The collection's `auth` sends the key.
      header: headers.flatMap(([key, value]) =>
        typeof value === 'string' ? [{ key, value: key === 'Idempotency-Key' ? FRESH : value }] : [],
      ),
      url: {
        raw: `{{QUITTANCE_URL}}/${path.join('/')}${new URL(url).search}`,
        ...{ host: ['{{QUITTANCE_URL}}'], path, query: of('query'), variable: of('path') },
      },
      ...(body === null ? {} : { body: { mode: 'raw', raw: refresh(body), options: { raw: { language: 'json' } } } }),
    },
    response: [],
  };
}

/** Renders the reference page: every operation with a program in each language, and every webhook, object and error. */
function renderReference(document: ApiDocument): string {
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

/** Renders the page for the operations with the tag `APART`, with their objects. */
function renderApart(document: ApiDocument): string {
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

/** Separates the groups on the main page from the ones that have their own page. */
function divide(document: ApiDocument): [Group[], Group[]] {
  const groups = groupOperations(document);
  return [groups.filter(({ tag }) => tag.name !== APART), groups.filter(({ tag }) => tag.name === APART)];
}

/** Returns the named objects in these operations' requests and successful responses. */
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
<p>Your <strong>server</strong> calls <code>${servers[0].url}</code> with your project's secret key in the header <code>X-Api-Key</code>, which must have the <i>scope</i> that the operation requires. The examples read it from the variable <code>${API_KEY.variable}</code>. Never call this API from a browser. Fields that are not marked <i>optional</i> are always present.</p>
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
<h4>Responses</h4><dl>${answers}</dl>
`;
}

function renderWebhooks(document: ApiDocument): Html {
  const events = eventsOf(document);
  const { properties, required } = events[0]?.schema ?? {};
  const common = {
    ...properties,
    type: { type: 'string' },
    data: { type: 'object', description: 'Differs by type' },
  };
  return html`<h2 id="webhooks">Webhooks</h2>
<p>A signed <code>POST</code> to your server for every change, in the format of Standard Webhooks.</p>
<ol>${RECEIVER_RULES.map((rule) => html`<li>${prose(rule)}</li>`)}</ol>
<h3 id="event">Fields of every event</h3>
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

/** The rules for a webhook receiver, in order. */
const RECEIVER_RULES = [
  'Verify `webhook-signature` on the raw bytes of the body, before anything parses them. The header is `v1,` and the base64 of an HMAC-SHA256 over `{webhook-id}.{webhook-timestamp}.{body}`; the key is your secret after `whsec_`, base64-decoded. The header can contain several signatures, separated by spaces: one valid signature is enough. Compare in constant time.',
  'Reject a `webhook-timestamp` (Unix seconds) more than 5 minutes from your clock.',
  'Return 2xx within 15 seconds, even for a `type` that you do not know. After any other response, Quittance retries for more than three days.',
  'Handle each `webhook-id` once: the same event may arrive twice.',
  'Read the invoice before you fulfil the order, and fulfil it only if its `status` is `PAID` and its `externalId` is the id that you stored.',
] as const;

/**
 * Writes programs that send a request and print the response, using nothing but the language's standard library. `id` is used in the page.
 */
export const LANGUAGES: readonly { id: string; name: string; write(request: ExampleRequest): string }[] = [
  { id: 'curl', name: 'curl', write: writeCurl },
  { id: 'js', name: 'JavaScript', write: writeJavaScript },
  { id: 'python', name: 'Python', write: writePython },
  { id: 'php', name: 'PHP', write: writePhp },
  { id: 'go', name: 'Go', write: writeGo },
  { id: 'java', name: 'Java', write: writeJava },
];

/** Shows only the programs in the chosen language, in browsers that support `:has`. */
const CHOICE = `${LANGUAGES.map(({ id }) => `main:has(#in-${id}:checked) .${id}`).join(',')}{display:block}`;
const STYLE = readAsset('docs.css').text + CHOICE;

/** The pages have only this style and nothing else. `data:` allows the empty icon, which keeps browsers from requesting one. */
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

function renderDocument(title: string, main: Html, nav: Html | null = null): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style>${rawHtml(STYLE)}</style>
</head>
<body>
<header><h1>${title}</h1></header>
${nav}
<main>
${main}
</main>
</body>
</html>
`.html;
}

/** Renders the page that every error's `type` links to. */
function renderErrors(): string {
  const problems = Object.entries(PROBLEMS).map(
    ([code, { status, title, advice }]) =>
      html`<h2 id="${code}"><code>${code}</code> (${status})</h2><p>${title}. ${prose(advice)}</p>`,
  );
  const main = html`<p>Every error is <code>application/problem+json</code> (RFC 9457): base your decisions on its <code>code</code>, show people <code>detail</code>, and give the operator <code>requestId</code>. Later releases may add codes. <a href="/docs">The reference</a> lists the codes for each operation.</p>
${problems}`;
  return renderDocument('Quittance API errors', main);
}

/** Renders a text from the document, with code in backticks. */
function prose(text = ''): Html {
  return html`${text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`))}`;
}

/** Renders an object's members, each with its type and meaning. */
function fieldList({ properties = {}, required = [] }: Schema): Html {
  const rows = Object.entries(properties).map(([name, schema]) =>
    row(name, describeValue(schema, `${required.includes(name) ? '' : ', optional'}`)),
  );
  return html`<dl>${rows}</dl>`;
}

function parameterList(parameters: readonly Parameter[]): Html {
  const rows = parameters.map(({ name, in: place, required, description, schema }) =>
    row(name, describeValue({ ...schema, description }, `, in ${place}${required === true ? '' : ', optional'}`)),
  );
  return html`<dl>${rows}</dl>`;
}

function row(name: string, value: Html): Html {
  return html`<dt><code>${name}</code></dt><dd>${value}</dd>
`;
}

/** Renders a value's type and meaning, with the members if it's an unnamed object. */
function describeValue(schema: Schema, more = ''): Html {
  const { properties, required } = schema.items ?? schema;
  const members = properties === undefined ? null : fieldList({ properties, required });
  return html`<i>${typeOf(schema)}${more}</i> ${prose(schema.description)}${members}`;
}

/** If there are more values than this, only the documentation lists them, so that pages don't repeat them everywhere. */
const MAX_SHOWN = 20;

function typeOf({ 'x-extensible-enum': known = [], ...schema }: Schema): Html {
  const { $ref, const: only, anyOf, items, type, format, minimum, maximum, default: usual } = schema;
  if ($ref !== undefined) return html`<a href="#${nameOf($ref)}">${nameOf($ref)}</a>`;
  if (only !== undefined) return html`<code>${only}</code>`;
  if (known.length > 0 && known.length <= MAX_SHOWN) {
    return known.map((value) => html`<code>${value}</code>`).reduce((before, each) => html`${before} or ${each}`);
  }
  if (anyOf !== undefined) return anyOf.map(typeOf).reduce((before, each) => html`${before} or ${each}`);
  if (items !== undefined) return html`array of ${typeOf(items)}`;
  const bounds = maximum === undefined ? '' : `, ${minimum} to ${maximum}`;
  return html`${format ?? type ?? ''}${bounds}${usual === undefined ? '' : `, default ${usual}`}`;
}

/** Links the codes in a list such as `INVALID_JSON, INVALID_REQUEST` to their errors, with their titles. */
function problemLinks(codes: string): Html {
  const problems = PROBLEMS as Readonly<Record<string, { title: string }>>;
  return codes
    .split(', ')
    .map((code) => html`<a href="/docs/errors#${code}">${code}</a> ${problems[code]?.title ?? ''}`)
    .reduce((before, each) => html`${before}<br>${each}`);
}

function writeCurl({ method, url, headers, body }: ExampleRequest): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const header = (name: string, value: string | Secret) =>
    typeof value === 'string' ? quote(`${name}: ${value}`) : `"${name}: $${value.variable}"`;
  const usual = body === null ? 'GET' : 'POST';
  return [
    `curl -sS${method === usual ? '' : ` -X ${method}`} ${quote(url)}`,
    ...headers.map(([name, value]) => `-H ${header(name, value)}`),
    ...(body === null ? [] : [`-d ${quote(body)}`]),
  ].join(' \\\n  ');
}

function writeJavaScript({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `process.env.${variable}`;
  return lines(
    `const answer = await fetch(${single(url)}, {`,
    `  method: ${single(method)},`,
    '  headers: {',
    ...headers.map(([name, value]) => `    ${single(name)}: ${writeValue(value, single, read)},`),
    '  },',
    body !== null && `  body: ${single(body)},`,
    '});',
    'console.log(answer.status, await answer.text());',
  );
}

function writePython({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `os.environ[${single(variable)}]`;
  return lines(
    'import os',
    'from urllib.request import Request, urlopen',
    '',
    'request = Request(',
    `    ${single(url)},`,
    `    method=${single(method)},`,
    '    headers={',
    ...headers.map(([name, value]) => `        ${single(name)}: ${writeValue(value, single, read)},`),
    '    },',
    body !== null && `    data=${single(body)}.encode(),`,
    ')',
    'with urlopen(request) as answer:  # HTTPError.read() is the problem',
    '    print(answer.status, answer.read().decode())',
  );
}

function writePhp({ method, url, headers, body }: ExampleRequest): string {
  const header = (name: string, value: string | Secret) =>
    typeof value === 'string' ? single(`${name}: ${value}`) : `${single(`${name}: `)} . getenv('${value.variable}')`;
  return lines(
    '<?php',
    `$request = curl_init(${single(url)});`,
    'curl_setopt_array($request, [',
    `    CURLOPT_CUSTOMREQUEST => ${single(method)},`,
    '    CURLOPT_HTTPHEADER => [',
    ...headers.map(([name, value]) => `        ${header(name, value)},`),
    '    ],',
    body !== null && `    CURLOPT_POSTFIELDS => ${single(body)},`,
    '    CURLOPT_RETURNTRANSFER => true,',
    ']);',
    '$answer = curl_exec($request);',
    "echo curl_getinfo($request, CURLINFO_RESPONSE_CODE), ' ', $answer;",
  );
}

function writeGo({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `os.Getenv(${double(variable)})`;
  return lines(
    'package main',
    '',
    'import (',
    '\t"fmt"',
    '\t"io"',
    '\t"net/http"',
    '\t"os"',
    body !== null && '\t"strings"',
    ')',
    '',
    'func main() {',
    `\trequest, err := http.NewRequest(${double(method)}, ${double(url)}, ${body === null ? 'nil' : `strings.NewReader(${double(body)})`})`,
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    ...headers.map(([name, value]) => `\trequest.Header.Set(${double(name)}, ${writeValue(value, double, read)})`),
    '\tanswer, err := http.DefaultClient.Do(request)',
    '\tif err != nil {',
    '\t\tpanic(err)',
    '\t}',
    '\tdefer answer.Body.Close()',
    '\ttext, err := io.ReadAll(answer.Body)',
    '\tfmt.Println(answer.StatusCode, string(text), err)',
    '}',
  );
}

function writeJava({ method, url, headers, body }: ExampleRequest): string {
  const read = ({ variable }: Secret) => `System.getenv(${double(variable)})`;
  const publisher = body === null ? 'noBody()' : `ofString(${double(body)})`;
  return lines(
    'import java.net.URI;',
    'import java.net.http.*;',
    '',
    'public class Example {',
    '  public static void main(String[] arguments) throws Exception {',
    `    var request = HttpRequest.newBuilder(URI.create(${double(url)}))`,
    `        .method(${double(method)}, HttpRequest.BodyPublishers.${publisher})`,
    ...headers.map(([name, value]) => `        .header(${double(name)}, ${writeValue(value, double, read)})`),
    '        .build();',
    '    var answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());',
    '    System.out.println(answer.statusCode() + " " + answer.body());',
    '  }',
    '}',
  );
}

function writeValue(value: string | Secret, quote: (text: string) => string, read: (secret: Secret) => string): string {
  return typeof value === 'string' ? quote(value) : read(value);
}

/** Returns a string literal for JavaScript, Python and PHP, none of which interpolates it. The text must be a single line. */
function single(text: string): string {
  return `'${text.replaceAll(/['\\]/g, '\\$&')}'`;
}

/** Returns a string literal for Go and Java. */
function double(text: string): string {
  return JSON.stringify(text);
}

function lines(...each: (string | false)[]): string {
  return each.filter((line) => line !== false).join('\n');
}

/** Groups the operations by tag, in document order, without tags that have no operations. */
function groupOperations({ tags, paths }: ApiDocument) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, details]): Operation => ({ method: method.toUpperCase(), path, details })),
  );
  return tags
    .map((tag) => ({ tag, operations: operations.filter(({ details }) => details.tags.includes(tag.name)) }))
    .filter((group) => group.operations.length > 0);
}

/** Operations with this tag are on a separate page below `/docs`. */
const APART = 'webhook-endpoints';

/** Returns the link to an operation in the reference. */
function placeOf({ details }: Operation): string {
  return `/docs${details.tags.includes(APART) ? `/${APART}` : ''}#${details.operationId}`;
}
