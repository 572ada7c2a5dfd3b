import { randomBytes, randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { renderExample } from '../../src/faces/checkout/page/page.ts';
import { registerConsole } from '../../src/faces/console/register.ts';
import { ACTIONS, type ActionName, type Rule } from '../../src/faces/operator/actions.ts';
import { ROLES } from '../../src/faces/operator/actor.ts';
import { createServer } from '../../src/faces/web/server.ts';
import { createTestDatabase, openTestDatabase, type TestDatabase } from '../support/postgres.ts';
import { withClient } from '../support/postgres-template.ts';
import { createTestProject } from '../support/service.ts';
import { actorNamed, openConsole } from './console.ts';
import { operationDeps, ownProcess } from './operation-deps.ts';

type Route = { method: string; url: string; action: ActionName | undefined };

/** Returns every route of the pages with its action, without requesting any. */
async function collectRoutes(): Promise<Route[]> {
  const now = () => unixMs(0);
  const random = (bytes: number) => randomBytes(bytes);
  const log = createLogger({ level: 'silent' });
  const app = createServer({ publicUrl: () => '', trustProxy: [], now, random, log, metrics: createMetrics() });
  const routes: Route[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const { action } = (config ?? {}) as { action?: ActionName };
    for (const each of [method].flat()) if (each !== 'HEAD') routes.push({ method: each, url, action });
  });
  registerConsole(app, {
    ...{ ...operationDeps({ db: {} as Database, now, random }), ...ownProcess(now()), renderExample },
    ...{ randomBelow: (n: number) => randomInt(n), publicUrl: () => '', consoleUrl: () => '' },
    ...{ onChange: () => undefined, findActor: async () => null, findSession: async () => null },
    ...{ stepUp: async () => null, sessionOf: () => '', people: () => Promise.reject(new Error('nobody')) as never },
  });
  await app.ready();
  await app.close();
  return routes;
}

const ROUTES = await collectRoutes();

/** These routes reveal nothing, and a stream sends nothing without a session. */
const OPEN = ['GET /*', 'GET /live', 'GET /assets/console.css', 'GET /assets/console.js'];

test('only the routes that this test lists are for everyone', () => {
  const open = ROUTES.filter(({ action }) => action === undefined);
  expect(open.map(({ method, url }) => `${method} ${url}`).toSorted()).toEqual(OPEN.toSorted());
});

const LOCKED = ROUTES.flatMap(({ method, url, action }) => {
  return action === undefined ? [] : [{ method, url, rule: ACTIONS[action] as Rule }];
});

test('who may request each other route is as recorded: else run "npm run golden:record", and review the difference', async () => {
  const lines = LOCKED.map(({ method, url, rule: { role, wide } }) => {
    return `${url} ${method}: ${role}${wide === true ? ' of all projects' : ''}\n`;
  });
  await expect(lines.toSorted().join('')).toMatchFileSnapshot('roles.txt');
});

let database: TestDatabase;
let db: Database;
let console_: Awaited<ReturnType<typeof openConsole>>;
beforeAll(async () => {
  database = await createTestDatabase();
  db = openTestDatabase(database, 4);
  const { id } = await createTestProject(db);
  console_ = await openConsole({ db, now: () => unixMs(Date.now()), publicUrl: () => 'https://pay.example' });
  console_.actors['olga'] = actorNamed('Olga', { projects: [id] });
});
afterAll(async () => {
  await console_.stop();
  await db.close();
  await database.drop();
});

/** The names that requests use. Olga owns only some projects. */
const PEOPLE = { vera: 'viewer', otto: 'operator', ana: 'owner', olga: 'owner' } as const;
const CELLS = LOCKED.flatMap((route) =>
  Object.entries(PEOPLE).map(([name, role]) => [name, role, `${route.method} ${route.url}`, route] as const),
);

/** Path parameters are `-`, which matches nothing. */
function ask(headers: Record<string, string>, { method, url }: Omit<Route, 'action'>) {
  const path = url.replace(/:\w+/g, '-');
  return method === 'GET' ? console_.get(path, headers) : console_.post(path, {}, headers);
}

test.each(CELLS)('%s (%s): %s', async (name, role, _route, asked) => {
  const { rule } = asked;
  const isAllowed = ROLES.indexOf(role) >= ROLES.indexOf(rule.role) && !(rule.wide === true && name === 'olga');
  const { status, text } = await ask({ 'x-actor': name }, asked);
  expect(text.includes('Your role does not allow this')).toBe(!isAllowed);
  if (!isAllowed) expect(status).toBe(403);
  // The subject `-` doesn't exist, and the form has no token.
  else expect([200, 303, 400, 403, 404, 409]).toContain(status);
});

test.each(LOCKED)('nobody: $method $url', async (route) => {
  const { status, headers } = await ask({ 'x-actor': 'nobody' }, route);
  expect([status, headers.get('location')?.split('?')[0]]).toEqual([303, '/sign-in']);
});

test('nothing of all that changed anything', async () => {
  const rows = await withClient(database.owner, (client) => client.query('select action from operator_actions'));
  expect(rows.rows).toEqual([]);
});
