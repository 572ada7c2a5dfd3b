import fc from 'fast-check';
import type { Shot } from './shot.ts';

/** A request before it's turned into bytes. Header names and values, and the body, have one character per byte. */
export type Draft = Pick<Shot, 'kind' | 'method' | 'route' | 'proof'> & {
  target: string;
  headers: [name: string, value: string][];
  body: string | null;
};

/** The way in which a request is written. None of it may change the request's meaning, except where noted. */
export type Writing = {
  framing: { kind: 'length' } | { kind: 'chunked'; sizes: number[]; extension: string; trailer: string };
  version: '1.1' | '1.0';
  /** `none` and `two` must be refused, because the request's host is then unknown (RFC 9112, 3.2). */
  hosts: 'one' | 'none' | 'two';
  absolute: boolean;
  client: number;
  extra: [name: string, value: string][];
  emptyLinesBefore: number;
};

export const writing: fc.Arbitrary<Writing> = fc.record({
  framing: fc.oneof(
    { weight: 3, arbitrary: fc.constant({ kind: 'length' } as const) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('chunked' as const),
        sizes: fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 5 }),
        extension: fc.constantFrom('', '', ';a=b', ';a="b c"'),
        trailer: fc.constantFrom('', '', 'X-Api-Key: trailing\r\n', 'X-Trailer: x\r\n'),
      }),
    },
  ),
  version: often('1.1', 40, '1.0'),
  hosts: often<Writing['hosts']>('one', 30, 'none', 'two'),
  absolute: often(false, 15, true),
  client: fc.nat(0xffffff),
  extra: fc.oneof(
    { weight: 2, arbitrary: fc.constant<[string, string][]>([]) },
    { weight: 1, arbitrary: fc.uniqueArray(extraHeader(), { minLength: 1, maxLength: 4, selector: String }) },
  ),
  emptyLinesBefore: often(0, 10, 1, 2),
});

/** Generates mostly the first value, `weight` times as often as the others together. */
export function often<Value>(usual: Value, weight: number, ...others: Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
}

/** Headers that a client, proxy or attacker may add. They change nothing here, or only what the oracles know. */
function extraHeader(): fc.Arbitrary<[string, string]> {
  return fc.constantFrom<[string, string]>(
    ['Accept', 'text/html;q=x, */*'],
    ['Accept-Encoding', 'gzip;q=0, *;q=9'],
    ['Accept-Language', `${'x-'.repeat(400)},;q=1;q=,\xff`],
    ['Accept-Language', 'ar;q=1.000,fa;q=0.999'],
    ['Cookie', 'a=b; __proto__=1'],
    ['Origin', 'https://evil.example'],
    ['Range', 'bytes=0-1,5-,-3'],
    ['If-None-Match', '*'],
    ['If-Modified-Since', 'yesterday'],
    ['X-HTTP-Method-Override', 'DELETE'],
    ['X-Original-URL', '/v1/events'],
    ['X-Forwarded-Host', 'evil.example'],
    ['X-Forwarded-Proto', 'javascript'],
    ['X-Request-Id', 'req_mine'],
    ['Last-Event-ID', '\xff\xfe'],
    ['__proto__', 'x'],
    ['constructor', 'x'],
    ['Accept-Version', '9.9.9'],
    ['TE', 'trailers, deflate;q=0.5'],
    ['Expect', '100-continue'],
    ['Expect', 'a-miracle'],
    ['Upgrade', 'h2c'],
    ['Connection', 'Upgrade, HTTP2-Settings'],
    ['Keep-Alive', 'timeout=999999'],
    ['Content-Encoding', 'identity'],
    ['Via', '1.1 a, '.repeat(300)],
    ['X-Large', 'x'.repeat(9000)],
  );
}

/** Returns the bytes of a request. Headers that are deliberately repeated or omitted are in the draft's headers. */
export function writeRequest(draft: Draft, how: Writing): Shot {
  const { method, body } = draft;
  const target = how.absolute && draft.target.startsWith('/') ? `http://pay.example${draft.target}` : draft.target;
  const address = `10.${how.client >> 16}.${(how.client >> 8) & 255}.${how.client & 255}`;
  const hosts = { one: ['q'], none: [], two: ['q', 'r'] }[how.hosts];
  // HTTP/1.0 has no chunks.
  const isChunked = body !== null && how.framing.kind === 'chunked' && how.version === '1.1';
  const lines = [
    `${method} ${target} HTTP/${how.version}`,
    ...hosts.map((host) => `Host: ${host}`),
    `X-Forwarded-For: ${address}`,
    ...draft.headers.map(([name, value]) => `${name}: ${value}`),
    ...how.extra.map(([name, value]) => `${name}: ${value}`),
    ...(body === null ? [] : [isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`]),
  ];
  const framed = body === null ? '' : isChunked ? chunk(body, how) : body;
  const refusesHost = how.hosts === 'two' || (how.hosts === 'none' && how.version === '1.1');
  return {
    kind: draft.kind,
    method,
    route: draft.route,
    proof: refusesHost ? { kind: 'refused' } : draft.proof,
    // The server refuses headers of 16 KiB in total; this is a little less.
    isMalformed: lines.join('').length > 15_000,
    text: `${'\r\n'.repeat(how.emptyLinesBefore)}${lines.join('\r\n')}\r\n\r\n${framed}`,
  };
}

function chunk(body: string, { framing }: Writing): string {
  if (framing.kind !== 'chunked') return body;
  let [written, at] = ['', 0];
  for (let i = 0; at < body.length; i++) {
    const part = body.slice(at, at + (framing.sizes[i % framing.sizes.length] ?? 1));
    written += `${part.length.toString(16)}${framing.extension}\r\n${part}\r\n`;
    at += part.length;
  }
  return `${written}0\r\n${framing.trailer}\r\n`;
}
