import { runInNewContext } from 'node:vm';
import type { FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import { checkJsonHeaders } from './headers.ts';

/** Returns the code of the refusal, or `null` if the content type is accepted. */
function check(type: string): string | null {
  const request = { raw: { rawHeaders: ['Content-Type', type] }, headers: { 'content-type': type } };
  try {
    checkJsonHeaders(request as unknown as FastifyRequest, 1000);
    return null;
  } catch (error) {
    return String((error as { code?: unknown }).code);
  }
}

test.each([
  ...[
    'application/json',
    'Application/JSON',
    'application/json ;',
    'application/json;;; ;',
    'application/json; charset=UTF-8',
  ],
  ...[
    'application/json;charset="utf-8" ; a=b',
    'application/json; a="b c"; d=e',
    "application/json;\ta=`'~\t; charset=utf-8",
  ],
])('%j is accepted', (type) => {
  expect(check(type)).toBeNull();
});

test.each([
  ...[
    '',
    'text/json',
    'application/jsonx',
    'application/json; charset=latin1',
    'application/json;charset=utf-8x',
    'application/json a=b',
  ],
  ...[
    'application/json; charset=',
    'application/json; a',
    'application/json; a=',
    'application/json; a="b',
    'application/json; a=b c=d',
  ],
  'application/json; charset = utf-8',
])('%j is refused', (type) => {
  expect(check(type)).toBe('UNSUPPORTED_MEDIA_TYPE');
});

// Only a context of its own can be stopped while a pattern is being matched.
test.each(['; ', ';   ', ';\t', '; a=b ', '; a="b" ', '; charset=utf-8 ', '; charset=', ' ', ';'])(
  'a header of 16 KB of %j, and then something else, is judged at once',
  (piece) => {
    for (const end of ['', '"', 'x', '; a', ' ']) {
      const type = `application/json${piece.repeat(16_000 / piece.length)}${end}`;
      runInNewContext('judge()', { judge: () => check(type) }, { timeout: 10_000 });
    }
  },
);
