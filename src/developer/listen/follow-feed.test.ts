import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { splitFeed } from './follow-feed.ts';

const ID = 'evt_01h455vb4pex5vsknk084sn02q';
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const split = (body: string) => splitFeed(new TextEncoder().encode(body));

const gap = fc.stringMatching(/^[ \t\r\n]{0,3}$/);
/** JSON in another writer's style, with whitespace, escapes and number formats that JSON.stringify doesn't produce. */
const foreignJson = fc.oneof(
  fc.json({ stringUnit: 'binary' }),
  fc.constantFrom(
    '1.50',
    '1E2',
    '-0',
    '"\\u0041\\/\\"\\\\"',
    '{ "a" : [ ] , "b":"]},{[\\\\" }',
    '{"data":[1,2]}',
    '""',
    '"\\ud800"',
    '12345678901234567890',
  ),
);

describe('splitFeed', () => {
  test('answers the exact bytes of every element, whatever they hold and whatever stands around them', () => {
    const elements = fc.array(fc.tuple(gap, foreignJson, gap), { maxLength: 8 });
    const others = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue(), { maxKeys: 3 });
    fc.assert(
      fc.property(elements, others, gap, fc.boolean(), fc.boolean(), (parts, extra, space, isFirst, hasMore) => {
        const data = `"data"${space}:${space}[${parts.map((part) => part.join('')).join(',') || space}]`;
        const rest = Object.entries({ ...extra, hasMore, latest: ID })
          .filter(([name]) => name !== 'data')
          .map(([name, value]) => `${JSON.stringify(name)}${space}:${JSON.stringify(value)}`);
        const members = isFirst ? [data, ...rest] : [...rest, data];
        const body = `${space}{${members.join(`${space},`)}${space}}${space}`;
        const page = split(body);
        expect(page).toMatchObject({ hasMore, latest: ID });
        expect(page?.events.map(text)).toEqual(parts.map(([, element]) => element.trim()));
        expect(page?.events.map((event) => JSON.parse(text(event)))).toEqual(JSON.parse(body).data);
      }),
      { numRuns: 500 },
    );
  });

  test('finds data also where its name is written with escapes', () => {
    const page = split('{"d\\u0061ta":[ {"a": 1.0} , 2],"hasMore":false,"latest":null}');
    expect(page?.events.map(text)).toEqual(['{"a": 1.0}', '2']);
  });

  test('is null for any bytes that are no page of the feed, and never throws', () => {
    const nothing = [
      '',
      'null',
      '[]',
      '{"data":{},"hasMore":false,"latest":null}',
      '{"data":[],"hasMore":0,"latest":null}',
      '{"data":[],"hasMore":false}',
      '{"data":[],"hasMore":false,"latest":"evt_1"}',
      '{"data":[1],"data":[2],"hasMore":false,"latest":null}',
      '{"data":[1,2],"hasMore":false,"latest":null',
      '\ufeff{"data":[],"hasMore":false,"latest":null}',
      '<html>502</html>',
    ];
    for (const body of nothing) expect(split(body)).toBeNull();
    expect(
      splitFeed(Uint8Array.from([...Buffer.from('{"data":["'), 0xff, ...Buffer.from('"],"hasMore":false}')])),
    ).toBeNull();
    fc.assert(fc.property(fc.uint8Array(), (bytes) => splitFeed(bytes) === null));
  });

  test('takes an array that is nested 100,000 deep', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const page = split(`{"data":[${deep}],"hasMore":false,"latest":null}`);
    expect(page?.events.map(text)).toEqual([deep]);
  });
});
