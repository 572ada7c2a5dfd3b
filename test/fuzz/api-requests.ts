import fc from 'fast-check';
import { type Draft, often, type Writing, writeRequest, writing } from './frame.ts';
import { headerText, hostileText, jsonText, pathText } from './hostile-text.ts';
import { type JsonSchema, type OpenApi, type Operation, type Parameter, validJson, validText } from './openapi.ts';
import { type Shot, utf8 } from './shot.ts';

type Header = [name: string, value: string];

/** Generates requests for every operation of the OpenAPI file: some correct in every way, most wrong in one or several. */
export function apiRequests(document: OpenApi): fc.Arbitrary<Shot> {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  return fc.constantFrom(...operations).chain(({ path, method, operation }) => {
    const drafts = fc.oneof(
      { weight: 2, arbitrary: rightDraft(path, method, operation) },
      { weight: 5, arbitrary: bentDraft(path, method, operation) },
    );
    return fc.tuple(drafts, writing).map(([draft, how]) => writeRequest(draft, unhurt(draft, how)));
  });
}

/** A correct request must not become wrong through the way in which it's written. */
function unhurt(draft: Draft, how: Writing): Writing {
  return ['valid', 'reads', 'answered'].includes(draft.proof.kind) ? { ...how, hosts: 'one' } : how;
}

type Given = Parameter & { text: string };

function rightDraft(path: string, method: string, operation: Operation): fc.Arbitrary<Draft> {
  const body = bodySchemaOf(operation);
  return fc
    .tuple(rightParameters(operation.parameters ?? []), body === null ? fc.constant(null) : validBody(body))
    .map(([given, json]) => {
      const headers: Header[] = [['X-Api-Key', '{{key}}']];
      for (const { in: place, name, text } of given) if (place === 'header') headers.push([name, text]);
      if (json !== null) headers.push(['Content-Type', 'application/json']);
      return {
        kind: `${operation.operationId}: right`,
        method,
        route: path,
        target: targetOf(
          path,
          given.map(({ in: place, name, text }) => ({ in: place, name, value: encodeText(text) })),
        ),
        headers,
        body: json === null ? null : utf8(json),
        proof: proofOf(operation, given, json),
      };
    });
}

/** All required parameters, and any of the optional ones. */
function rightParameters(parameters: Parameter[]): fc.Arbitrary<Given[]> {
  const each = parameters.map((parameter) => validText(parameter.name, parameter.schema));
  const optional = parameters.filter(({ required }) => required !== true);
  return fc.tuple(fc.tuple(...each), fc.subarray(optional)).map(([texts, chosen]) => {
    const lonely = chosen.find(({ description }) => description?.includes('combined with other parameters'));
    return parameters.flatMap((parameter, i) => {
      const isSent = parameter.required === true || (lonely ? parameter === lonely : chosen.includes(parameter));
      return isSent ? [{ ...parameter, text: texts[i] ?? '' }] : [];
    });
  });
}

function proofOf({ operationId }: Operation, given: readonly Given[], json: string | null): Draft['proof'] {
  if (json !== null)
    return operationId === 'createInvoice' ? { kind: 'valid', json } : { kind: 'body', json: utf8(json) };
  if (given.some(({ text }) => text === '{{foreignEndpoint}}')) return { kind: 'none' };
  // The fuzzed project is the sandbox's demo project, which can't be ended.
  if (operationId === 'endSandboxProject') return { kind: 'none' };
  const readId = given.find(({ name }) => name === 'invoiceId')?.text;
  if (readId === undefined) return { kind: 'answered' };
  return readId === '{{foreign}}' ? { kind: 'none' } : { kind: 'reads', invoiceId: readId };
}

/** Names aren't encoded before they are filled in. */
function encodeText(text: string): string {
  return /^\{\{\w+\}\}$/.test(text) ? text : encodeURIComponent(text);
}

function targetOf(path: string, given: { in: string; name: string; value: string }[]): string {
  let target = path;
  for (const { name, value } of given.filter(({ in: place }) => place === 'path')) {
    target = target.replace(`{${name}}`, value);
  }
  const query = given.filter(({ in: place }) => place === 'query').map(({ name, value }) => `${name}=${value}`);
  return query.length === 0 ? target : `${target}?${query.join('&')}`;
}

function bodySchemaOf({ requestBody }: Operation): JsonSchema | null {
  return requestBody?.content['application/json']?.schema ?? null;
}

/** A body that the schema allows, with its members in any order and surrounded by any whitespace. */
function validBody({ properties = {}, required = [], if: either }: JsonSchema): fc.Arbitrary<string> {
  if (either !== undefined) {
    const { amount, price, ...others } = properties as Record<'amount' | 'price', JsonSchema>;
    const bodyWith = (name: string, schema: JsonSchema) =>
      validBody({ properties: { ...others, [name]: schema }, required: [...required, name] });
    return fc.oneof({ weight: 3, arbitrary: bodyWith('amount', amount) }, bodyWith('price', price));
  }
  const members = Object.entries(properties).map(([name, schema]) => {
    const member = validJson(name, schema).map((json) => `${JSON.stringify(name)}:${json}`);
    return required.includes(name) ? member : fc.option(member);
  });
  const spaces = fc.constantFrom('', '', ' ', '\n\t\r ');
  return fc
    .tuple(
      fc.tuple(...members).chain((all) => {
        const each = all.filter((member) => member !== null);
        return fc.shuffledSubarray(each, { minLength: each.length });
      }),
      spaces,
    )
    .map(([each, space]) => `${space}{${space}${each.join(`${space},${space}`)}${space}}${space}`);
}

/** Methods that Node's parser knows. `CONNECT` isn't a normal request, and is covered in `wild.ts`. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH'];

function bentDraft(path: string, method: string, operation: Operation): fc.Arbitrary<Draft> {
  const { parameters = [] } = operation;
  const isPost = method === 'POST';
  return fc
    .record({
      method: often(method, 8, ...METHODS),
      given: fc.tuple(...parameters.map(bentParameter)),
      strays: often<string[]>(
        [],
        6,
        ['unknown=1'],
        ['__proto__=1', 'constructor=2'],
        ['a[b]=1', '&&=', '=x'],
        ['lang=ar'],
      ),
      key: bentKey,
      type: isPost ? bentType : fc.oneof(fc.constant<Header[]>([]), bentType),
      body: bentBody(bodySchemaOf(operation)),
    })
    .map(({ method: bentMethod, given, strays, key, type, body }) => {
      const placed = parameters.flatMap(({ in: place, name }, i) =>
        (given[i] ?? []).map((value) => ({ in: place as string, name, value })),
      );
      const headers = placed
        .filter(({ in: place }) => place === 'header')
        .map(({ name, value }): Header => [name, value]);
      const stray = strays.map((text) => ({
        in: 'query',
        name: text.split('=')[0] ?? '',
        value: text.split('=')[1] ?? '',
      }));
      const hasBody = isPost || body.length % 3 === 0;
      return {
        kind: `${operation.operationId}: bent`,
        method: bentMethod,
        route: path,
        target: targetOf(path, [...placed, ...stray]),
        headers: [...key, ...headers, ...type],
        body: hasBody ? body : null,
        proof: { kind: 'body', json: hasBody ? body : '' },
      };
    });
}

/** Ids that belong elsewhere. */
const STRAY_IDS = ['{{pending}}', '{{foreignEvent}}', '{{foreignTransfer}}', `evt_${'0'.repeat(26)}`];

/** The values of a parameter in the order in which they are sent: mostly one, and often none if it's optional. */
function bentParameter({ in: place, name, required, schema }: Parameter): fc.Arbitrary<string[]> {
  const right = validText(name, schema);
  // An empty segment, or one with a slash, would lead to another route.
  if (place === 'path') {
    const segment = pathText.map((text) => text.replaceAll('/', '_') || '_');
    return fc.oneof(right.map(encodeText), segment).map((value) => [value]);
  }
  const value =
    place === 'header'
      ? fc.oneof(right, headerText)
      : fc.oneof(right.map(encodeText), pathText, fc.constantFrom(...STRAY_IDS));
  return fc.oneof(
    { weight: 8, arbitrary: value.map((one) => [one]) },
    { weight: required === true ? 1 : 8, arbitrary: fc.constant<string[]>([]) },
    { weight: 1, arbitrary: fc.tuple(value, value) },
  );
}

const bentKey: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Header[]>([['X-Api-Key', '{{key}}']]) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Header[]>(
      [],
      [['X-Api-Key', '{{revokedKey}}']],
      [['X-Api-Key', '{{readingKey}}']],
      [['x-api-key', '{{key}}x']],
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constant<Header[]>([
      ['X-Api-Key', '{{key}}'],
      ['X-Api-Key', '{{key}}'],
    ]),
  },
  { weight: 1, arbitrary: headerText.map((text): Header[] => [['X-Api-Key', text]]) },
);

const JSON_TYPES = ['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON;charset="utf-8"'];
const OTHER_TYPES = [
  ...['', 'text/plain', 'application/json; charset=utf-16', 'application/json, text/html', 'application/jsonp'],
  ...['multipart/form-data; boundary=x', 'application/x-www-form-urlencoded', 'application/json;', '/', 'a/b;c="'],
];

const bentType: fc.Arbitrary<Header[]> = fc.oneof(
  { weight: 10, arbitrary: fc.constantFrom(...JSON_TYPES).map((type): Header[] => [['Content-Type', type]]) },
  { weight: 2, arbitrary: fc.constantFrom(...OTHER_TYPES).map((type): Header[] => [['Content-Type', type]]) },
  { weight: 1, arbitrary: headerText.map((text): Header[] => [['Content-Type', text]]) },
  {
    weight: 1,
    arbitrary: fc.constant<Header[]>([
      ['Content-Type', 'application/json'],
      ['Content-Type', 'text/plain'],
    ]),
  },
  {
    weight: 1,
    arbitrary: fc.constant<Header[]>([
      ['Content-Type', 'application/json'],
      ['Content-Encoding', 'gzip'],
    ]),
  },
);

/** A body as bytes: an object with wrong, missing, unknown or repeated members, or no object at all. */
function bentBody(schema: JsonSchema | null): fc.Arbitrary<string> {
  const properties = schema?.properties ?? {};
  // With both an amount and a price it would be refused for that alone.
  const names = Object.keys(properties).filter((name) => schema?.if === undefined || name !== 'price');
  const members = names
    .map((name) => [name, properties[name] ?? {}] as const)
    .map(([name, each]) =>
      fc.oneof({ weight: 6, arbitrary: validJson(name, each) }, { weight: 1, arbitrary: jsonText }),
    );
  const extra = fc.tuple(
    fc.oneof(fc.constantFrom(...Object.keys(properties), '__proto__', 'constructor', 'a\\u006dount', ''), hostileText),
    jsonText,
  );
  const objects = fc
    .tuple(
      fc.tuple(...members),
      fc.array(extra, { maxLength: 2 }),
      fc.subarray(names, { minLength: Math.max(0, names.length - 1) }),
    )
    .map(([values, extras, kept]) => {
      const own = names.flatMap((name, i) => (kept.includes(name) ? [`"${name}":${values[i]}`] : []));
      const strays = extras.map(
        ([name, value]) => `${name.includes('\\u') ? `"${name}"` : JSON.stringify(name)}:${value}`,
      );
      return utf8(`{${[...own, ...strays].join(',')}}`);
    });
  return fc.oneof(
    { weight: 10, arbitrary: objects },
    { weight: 1, arbitrary: jsonText.map(utf8) },
    { weight: 1, arbitrary: objects.chain((text) => fc.nat(text.length).map((end) => text.slice(0, end))) },
    { weight: 1, arbitrary: objects.map((text) => `\xef\xbb\xbf${text}`) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1')) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 16_000, max: 40_000 }).map((length) => `{"amount":"${'1'.repeat(length)}"}`),
    },
    { weight: 1, arbitrary: objects.map((text) => text + ' '.repeat(Math.max(0, 16 * 1024 - text.length))) },
  );
}
