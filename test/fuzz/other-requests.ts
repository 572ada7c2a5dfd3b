import fc from 'fast-check';
import { type Draft, often, writeRequest, writing } from './frame.ts';
import { headerText, hostileText, jsonText, pathText } from './hostile-text.ts';
import { PAID_TX, type Shot, utf8 } from './shot.ts';

type Header = [name: string, value: string];

/** Routes that the OpenAPI file doesn't describe: pages with their parts, health, documentation. */
export const OTHER_ROUTES = {
  page: '/c/{token}',
  status: '/c/{token}/status',
  parts: '/c/{token}/parts',
  live: '/c/{token}/live',
  ask: '/c/{token}/ask',
  lookup: '/c/{token}/lookup',
  receipt: '/c/{token}/receipt',
  receiptJson: '/c/{token}/receipt.json',
  below: '/c/{token}/nothing',
  logo: '/logos/{id}',
  keys: '/.well-known/quittance-receipt-keys.json',
  robots: '/robots.txt',
  script: '/assets/checkout.js',
  healthz: '/healthz',
  readyz: '/readyz',
  docs: '/docs',
  errors: '/docs/errors',
  postman: '/docs/postman.json',
  llms: '/llms.txt',
  openapi: '/openapi.json',
  adapterOrder: '/adapters/{{epusdt}}/api/v1/order/create-transaction',
  adapterForm: '/adapters/{{epay}}/mapi.php',
  adapterStatus: '/adapters/{{epusdt}}/pay/check-status/{token}',
} as const;

type RouteName = keyof typeof OTHER_ROUTES;

/** Routes that only accept POST. */
const POSTED = new Set<RouteName>(['ask', 'lookup', 'adapterOrder', 'adapterForm']);
const IN_JSON = new Set<RouteName>(['lookup', 'adapterOrder']);

const tokens = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('{{pendingToken}}', '{{paidToken}}', '{{expiredToken}}', '{{foreignToken}}'),
  },
  { weight: 1, arbitrary: fc.stringMatching(/^[1-9A-HJ-NP-Za-km-z]{16,22}$/) },
  { weight: 1, arbitrary: pathText.map((text) => text.replaceAll('/', '_') || '_') },
);

const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('lang', 'v', 'lang=ar&lang', '__proto__'), pathText)
      .map((pair) => `?${pair.join('=')}`),
  },
  { weight: 1, arbitrary: fc.constantFrom('?lang=fa', '?lang=zh-TW&v=1', '?', '?&&==&', '?lang', '?lang[]=ar', '?%') },
);

/** Generates requests for pages and everything else that isn't an API operation. */
export const otherRequests: fc.Arbitrary<Shot> = fc
  .tuple(fc.constantFrom(...(Object.keys(OTHER_ROUTES) as RouteName[])), tokens, query)
  .chain(([name, token, asked]) => {
    const target = OTHER_ROUTES[name].replace('{token}', token).replace('{id}', token) + asked;
    const method = POSTED.has(name)
      ? often('POST', 8, 'GET', 'HEAD', 'PUT')
      : often('GET', 8, 'HEAD', 'POST', 'OPTIONS', 'TRACE');
    const body = IN_JSON.has(name) ? lookupBody : POSTED.has(name) ? formBody : fc.constant(null);
    return fc.tuple(method, body, writing).map(([sent, content, how]) => {
      // A stream has no end, so it's requested in `wild.ts`; here its headers are enough.
      const isStream = name === 'live' && sent === 'GET';
      const draft: Draft = {
        kind: `page ${name}`,
        method: isStream ? 'HEAD' : sent,
        route: OTHER_ROUTES[name],
        target,
        headers: content === null ? [] : content.headers,
        body: content === null ? null : content.body,
        proof: { kind: 'none' },
      };
      return writeRequest(draft, how);
    });
  });

type Content = { headers: Header[]; body: string };

const TRANSACTIONS = [
  `{{${PAID_TX}}}`,
  `0x{{${PAID_TX}}}`,
  `https://tronscan.org/#/transaction/{{${PAID_TX}}}`,
  'ab'.repeat(32),
  'T'.repeat(34),
];
const asked = fc.oneof(fc.constantFrom(...TRANSACTIONS), hostileText);

const lookupBody: fc.Arbitrary<Content> = fc
  .tuple(
    often('application/json', 8, 'text/plain', 'application/x-www-form-urlencoded'),
    fc.oneof(
      { weight: 4, arbitrary: asked.map((text) => `{"transaction":${JSON.stringify(text)}}`) },
      { weight: 1, arbitrary: jsonText.map((text) => `{"transaction":${text}}`) },
      { weight: 1, arbitrary: jsonText },
    ),
  )
  .map(([type, json]) => ({ headers: [['Content-Type', type]], body: utf8(json) }));

const formBody: fc.Arbitrary<Content> = fc
  .record({
    type: fc.oneof(
      { weight: 6, arbitrary: fc.constant('application/x-www-form-urlencoded') },
      { weight: 1, arbitrary: headerText },
      {
        weight: 1,
        arbitrary: fc.constantFrom('text/plain', 'multipart/form-data; boundary=b', '', 'foo', 'a/b; c="d'),
      },
    ),
    field: fc.constantFrom('transaction', 'paste', 'fee', '__proto__', ''),
    text: fc.oneof(
      asked.map((text) => encodeURIComponent(text.toWellFormed())),
      pathText,
    ),
    times: often(1, 6, 2, 40),
  })
  .map(({ type, field, text, times }) => ({
    headers: [['Content-Type', type]],
    body: Array.from({ length: times }, () => `${field}=${text}`).join('&'),
  }));

/** Paths that don't exist. The answer repeats the path, which proves which request it belongs to. */
export const markerRequests: fc.Arbitrary<Shot> = fc.uuid().map((id) => marker(id, ''));

/** Returns the last request of a connection. */
export function lastRequest(id: string): Shot {
  return marker(id, 'Connection: close\r\n');
}

function marker(id: string, header: string): Shot {
  const path = `/nowhere/${id}`;
  return {
    kind: 'marker',
    method: 'GET',
    route: null,
    text: `GET ${path} HTTP/1.1\r\nHost: q\r\n${header}\r\n`,
    isMalformed: false,
    proof: { kind: 'marker', path },
  };
}

/** Paths of any printable characters outside all routes. The HTTP parser may refuse them. */
export const strangePaths: fc.Arbitrary<Shot> = fc
  .tuple(
    fc.string({ maxLength: 60 }).map((text) => text.replaceAll(/\s/g, '')),
    fc.constantFrom('/', '//', '/v1/', '/v1/../v1/invoices/', '/c/', '*', 'q:80'),
  )
  .map(([text, start]) => ({
    kind: 'strange path',
    method: 'GET',
    route: null,
    text: `GET ${start}${text} HTTP/1.1\r\nHost: q\r\n\r\n`,
    isMalformed: true,
    proof: { kind: 'none' },
  }));
