import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canRun, runExample } from '../../../../test/support/run-example.ts';
import { API_KEY } from './example-request.ts';
import { LANGUAGES } from './register-reference.ts';

/** Echoes the request. */
const server = createServer(async (request: IncomingMessage, response) => {
  const { method, url, headers } = request;
  const { 'x-api-key': key, 'x-note': note } = headers;
  response.end(JSON.stringify({ method, url, key, note, body: await text(request) }));
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  origin = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
});
afterAll(() => server.close());

/** Characters that end a string literal, or have a meaning in one, in some language. */
const HOSTILE = `'"\\$(id) \`id\` \${id} {$id} %s \\n #{id} '''`;

test.for(['curl', 'js', 'python'])('%s sends what it was given, whatever stands in it', async (id, { skip }) => {
  if (!(await canRun(id))) skip(`this machine cannot run ${id}`);
  const write = LANGUAGES.find((language) => language.id === id)?.write;
  const body = JSON.stringify({ text: `${HOSTILE} é` });
  const headers = [['X-Api-Key', API_KEY] as const, ['X-Note', HOSTILE] as const];
  const code = write?.({ method: 'PUT', url: `${origin}/a?b=$c`, headers, body }) ?? '';
  const said = await runExample(id, code, 'sk_1');
  const asked = { method: 'PUT', url: '/a?b=$c', key: 'sk_1', note: HOSTILE, body };
  expect(JSON.parse(said.slice(said.indexOf('{')))).toEqual(asked);
});

test('Go and Java have it in literals of JSON, PHP in single quotes', () => {
  const request = { method: 'PUT', url: 'https://q.example', headers: [['X-Note', HOSTILE] as const], body: null };
  const codes = Object.fromEntries(LANGUAGES.map(({ id, write }) => [id, write(request)]));
  expect(codes['go']).toContain(JSON.stringify(HOSTILE));
  expect(codes['java']).toContain(JSON.stringify(HOSTILE));
  expect(codes['php']).toContain(`'X-Note: ${HOSTILE.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`);
});
