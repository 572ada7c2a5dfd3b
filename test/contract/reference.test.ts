import { createHash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../src/core/domain/api-key.ts';
import { plainText, rawHtml } from '../../src/faces/web/html.ts';
import { PROBLEMS } from '../../src/faces/web/problem.ts';
import { canRun, runExample } from '../support/run-example.ts';
import { type Json, startTestService, type TestService } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { ask, expectProblem, get, type Reply } from './ask.ts';
import { addKey } from './keys.ts';

let service: TestService;
let document: Json;
let docs: Reply;
/** The page of operations that aren't on the main page. */
let apart: Reply;
/** A key that may do everything. */
let apiKey: string;
beforeAll(async () => {
  service = await startTestService();
  document = (await ask(`${service.url}/openapi.json`)).body;
  docs = await ask(`${service.url}/docs`);
  apart = await ask(`${service.url}/docs/webhook-endpoints`);
  ({ apiKey } = await addKey(service.db, service.project.id, { scopes: SCOPES }));
});
afterAll(() => service.stop());

const operations = () =>
  Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, details]) => ({ method: method.toUpperCase(), path, details })),
  );

/** Returns the text between a heading and the next one. */
const sectionOf = (id: string) => (docs.text + apart.text).split(`<h3 id="${id}">`)[1]?.split(/<h[23]/)[0] ?? '';

const exampleOf = (operationId: string, language: string) => {
  const [, code = ''] =
    new RegExp(`class="${language}">.*?<pre><code>(.*?)</code>`, 's').exec(sectionOf(operationId)) ?? [];
  return plainText(rawHtml(code));
};

const idsOf = (text: string) => [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);

describe('GET /docs', () => {
  test('has every operation with its parameters, fields, answers, and an example in six languages', () => {
    expect(operations().length).toBeGreaterThan(4);
    for (const { method, path, details } of operations()) {
      const section = sectionOf(details.operationId);
      const [{ apiKey: scopes }] = details.security;
      expect(section).toContain(`<b>${method}</b> ${path}</code> scope <code>${scopes}</code>`);
      for (const language of ['curl', 'js', 'python', 'php', 'go', 'java']) {
        const code = exampleOf(details.operationId, language);
        expect(code, `${language} of ${details.operationId}`).toContain(`${service.url}${path.split('{')[0]}`);
        expect(code).toContain('QUITTANCE_API_KEY');
      }
      for (const { name } of details.parameters ?? []) expect(section).toContain(`<code>${name}</code>`);
      for (const status of Object.keys(details.responses)) expect(section).toContain(`<dt>${status}</dt>`);
    }
    for (const name of document.components.schemas.CreateInvoice.required) {
      expect(sectionOf('createInvoice')).toContain(`<code>${name}</code>`);
    }
  });

  test('has every webhook and every object, and no link leads nowhere', async () => {
    for (const type of Object.keys(document.webhooks)) expect(docs.text).toContain(`<code>${type}</code></h3>`);
    const [own, others] = [idsOf(docs.text), idsOf(apart.text)];
    expect([...own, ...others]).toEqual(expect.arrayContaining(Object.keys(document.components.schemas)));
    const errors = idsOf((await ask(`${service.url}/docs/errors`)).text);
    expect(errors).toEqual(Object.keys(PROBLEMS));
    for (const [ids, { text }] of [[own, docs] as const, [others, apart] as const]) {
      expect(new Set(ids).size).toBe(ids.length);
      const links = [...text.matchAll(/ href="([^"]+)"/g)].map(([, link = '']) => link);
      for (const link of new Set(links)) {
        const [path = '', anchor] = link.split('#');
        if (anchor !== undefined) expect(path === '' ? ids : errors, link).toContain(anchor);
        else if (link !== 'data:,') expect((await ask(service.url + path)).status, link).toBe(200);
      }
    }
  });

  test('is one document of at most 64 kB that runs and loads nothing, and so is the page of endpoints', () => {
    for (const { text } of [docs, apart]) expect(Buffer.byteLength(text)).toBeLessThan(64_000);
    expect(docs.headers['content-type']).toBe('text/html; charset=utf-8');
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(docs.text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(docs.headers['content-security-policy']).toContain(`style-src 'sha256-${hash}'`);
    expect(docs.headers['content-security-policy']).not.toContain('unsafe');
    expect(docs.text).not.toMatch(/<script|<img|<iframe| style=| on[a-z]+=|@import|url\(/);
    expect(docs.text).not.toMatch(/(href|src)="(https?:)?\/\//);
  });

  test('names the public URL, whatever the Host header says', async () => {
    for (const path of ['/docs', '/docs/errors', '/docs/postman.json', '/llms.txt']) {
      const plain = await ask(service.url + path);
      const host = 'evil.example"><script>';
      const hostile = await ask(service.url + path, { headers: { host, 'x-forwarded-host': 'evil.example' } });
      expect([hostile.status, hostile.text], path).toEqual([200, plain.text]);
      if (path !== '/docs/errors') expect(plain.text).toContain(service.url);
    }
  });

  test('is sent compressed, without a body to HEAD, and to no other method', async () => {
    const { headers } = await ask(`${service.url}/docs`, { headers: { 'accept-encoding': 'gzip' } });
    expect(headers['content-encoding']).toBe('gzip');
    expect(Number(headers['content-length'])).toBeLessThan(12_000);
    for (const path of ['/docs', '/docs/postman.json', '/llms.txt']) {
      const head = await ask(service.url + path, { method: 'HEAD' });
      expect([head.status, head.text], path).toEqual([200, '']);
      expectProblem(await ask(service.url + path, { method: 'POST' }), 405, 'METHOD_NOT_ALLOWED');
    }
  });
});

describe('an example, run as it stands on the page', () => {
  const runs = async (language: string, operationId: string) =>
    runExample(language, exampleOf(operationId, language), apiKey);

  test.for(['curl', 'js', 'python'])('%s creates an invoice, the same each time', async (language, { skip }) => {
    if (!(await canRun(language))) skip(`this machine cannot run ${language}`);
    const said = await runs(language, 'createInvoice');
    const invoice = JSON.parse(said.slice(said.indexOf('{')));
    expect(invoice).toMatchObject({ externalId: 'order-1001', status: 'PENDING' });
    const { body } = await get(service, `/v1/invoices/${invoice.invoiceId}`);
    expect(body).toEqual(invoice);
  });

  longTest('every other one is understood', async () => {
    await runs('js', 'createInvoice');
    const answers = await Promise.all(
      operations().map(async ({ details }) => [
        details.operationId,
        (await runs('js', details.operationId)).slice(0, 3),
      ]),
    );
    // The id in the example doesn't exist as an invoice or endpoint.
    expect(Object.fromEntries(answers)).toEqual({
      ...{ createInvoice: '201', findInvoices: '200', readInvoice: '404', withdrawInvoice: '404' },
      ...{ listEvents: '200', listTransfers: '200' },
      ...{ listWebhookEndpoints: '200', createWebhookEndpoint: '201', readWebhookEndpoint: '404' },
      ...{ updateWebhookEndpoint: '404', rotateWebhookSecret: '404', testWebhookEndpoint: '404' },
      ...{ enableWebhookEndpoint: '404', disableWebhookEndpoint: '404' },
    });
  });
});

test('GET /docs/postman.json is a collection (v2.1) of every operation, which asks for the key alone', async () => {
  const { headers, body } = await ask(`${service.url}/docs/postman.json`);
  expect(headers['content-type']).toMatch(/^application\/json/);
  expect(body.info).toMatchObject({ name: 'Quittance API', schema: expect.stringContaining('/collection/v2.1.0/') });
  const variables = Object.fromEntries(body.variable.map(({ key, value }: Json) => [key, value]));
  expect(body.variable.find(({ key }: Json) => key === 'QUITTANCE_API_KEY').type).toBe('secret');
  expect(variables).toEqual({ QUITTANCE_URL: service.url, QUITTANCE_API_KEY: '' });
  const auth = Object.fromEntries(body.auth[body.auth.type].map(({ key, value }: Json) => [key, value]));
  expect(auth).toEqual({ key: 'X-Api-Key', value: '{{QUITTANCE_API_KEY}}', in: 'header' });
  const items: Json[] = body.item.flatMap(({ name, item }: Json) => {
    expect(document.tags.map((tag: Json) => tag.name)).toContain(name);
    return item;
  });
  const shown = items.map(({ request }) => `${request.method} /${request.url.path.join('/')}`);
  expect(shown.sort()).toEqual(
    operations()
      .map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`)
      .sort(),
  );
  // As Postman fills in its own variables, anew each time that a request is sent.
  const filled = (text: string) =>
    text
      .replaceAll('{{$guid}}', () => randomUUID())
      .replaceAll(/\{\{(\w+)\}\}/g, (_all, name: string) => variables[name]);
  for (const { name, request } of items) {
    expect(filled(request.url.raw).startsWith(`${service.url}/v1/`), name).toBe(true);
    expect(request.header.map(({ key }: Json) => key)).not.toContain('X-Api-Key');
    const values = Object.fromEntries(request.url.variable.map(({ key, value }: Json) => [key, value]));
    const url = filled(request.url.raw).replaceAll(/:([a-z]\w*)/gi, (all, key: string) => values[key] ?? all);
    const reply = await ask(url, {
      method: request.method,
      headers: {
        'x-api-key': apiKey,
        ...Object.fromEntries(request.header.map(({ key, value }: Json) => [key.toLowerCase(), filled(value)])),
      },
      ...(request.body === undefined ? {} : { body: filled(request.body.raw) }),
    });
    expect([200, 201, 404, 409], `${name}: ${reply.text}`).toContain(reply.status);
  }
});

test('a creation of the collection can be sent again and again: each time it makes another invoice', async () => {
  const { body } = await ask(`${service.url}/docs/postman.json`);
  const items: Json[] = body.item.flatMap(({ item }: Json) => item);
  const { request } =
    items.find(({ request: each }) => each.method === 'POST' && each.url.path.at(-1) === 'invoices') ?? {};
  const send = () => {
    const filled = (text: string) => text.replaceAll('{{$guid}}', () => randomUUID());
    const headers = Object.fromEntries(
      request.header.map(({ key, value }: Json) => [key.toLowerCase(), filled(value)]),
    );
    return ask(`${service.url}/v1/invoices`, {
      method: 'POST',
      headers: { ...headers, 'x-api-key': apiKey },
      body: filled(request.body.raw),
    });
  };
  const [first, second] = [await send(), await send()];
  expect([first.status, second.status]).toEqual([201, 201]);
  expect(first.body.invoiceId).not.toBe(second.body.invoiceId);
  expect(second.headers['idempotent-replayed']).toBeUndefined();
});

test('GET /llms.txt has a title, a summary, both endpoints and links that lead somewhere', async () => {
  const { headers, text } = await ask(`${service.url}/llms.txt`);
  expect(headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(text).toMatch(/^# Quittance\n\n> .+\n/);
  for (const told of ['POST /v1/invoices', 'GET /v1/invoices/{invoiceId}', 'webhook-signature', 'Idempotency-Key']) {
    expect(text).toContain(told);
  }
  const links = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\): \S/gm)].map(([, link = '']) => link);
  expect(links.length).toBe(4 + operations().length);
  for (const link of links) {
    const [url = '', anchor] = link.split('#');
    const reply = await ask(url);
    expect(reply.status, link).toBe(200);
    if (anchor !== undefined) expect(idsOf(reply.text), link).toContain(anchor);
  }
});
