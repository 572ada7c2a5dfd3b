import { randomBytes, randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { renderExample } from '../../src/faces/checkout/page/example.ts';
import { registerConsole } from '../../src/faces/console/register.ts';
import { ACTIONS, type ActionName, type Rule } from '../../src/faces/operator/actions.ts';
import { ROLES, type Role } from '../../src/faces/operator/actor.ts';
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
/** Who may request each route, stated independently. A route that isn't listed here fails, and so does one whose action disagrees. */
const WHO: Record<string, string> = {
  viewer: `
    GET /
    GET /find
    GET /invoices
    GET /invoices.csv
    GET /invoices/:invoiceId
    GET /unmatched
    GET /unmatched/:transferId
    GET /webhooks
    GET /webhooks/:endpointId
    GET /events/:eventId
    GET /addresses
    GET /addresses/changes/:changeId
    GET /reports
    GET /reports.csv
    GET /reports.json
    GET /requests
    GET /requests/:requestId
    GET /settings
    GET /settings/project
    GET+POST /settings/project/preview
    GET /settings/projects
    GET /settings/me
    GET+POST /settings/me/passkeys/new
    GET+POST /settings/me/passkeys/:passkeyId/remove
    POST /settings/me/sessions/end-others
    POST /settings/me/sessions/:sessionId/end
  `,
  'viewer of all projects': `
    POST /addresses/compare/:projectId/:after
    GET /chain
    GET /chain/producers
    GET /chain/jobs/:jobId
    POST /chain/jobs/:jobId/stop
    GET+POST /chain/verify
    GET+POST /chain/reconcile
    GET /settings/notifications
  `,
  operator: `
    GET+POST /invoices/new
    POST /invoices/:invoiceId/replay
    GET+POST /invoices/:invoiceId/withdraw
    POST /unmatched/:transferId
    POST /webhooks/:endpointId/test
    POST /webhooks/:endpointId/enable
    GET+POST /webhooks/:endpointId/replay
    POST /events/:eventId/replay
    GET+POST /addresses/changes/:changeId/withdraw
    GET+POST /addresses/:address/retire
  `,
  'operator of all projects': `
    GET+POST /chain/rescan
    GET+POST /chain/jobs/:jobId/rescan
    GET+POST /chain/alarms/:alarm
    POST /settings/notifications/:channelId/test
  `,
  owner: `
    GET+POST /webhooks/add
    GET+POST /webhooks/:endpointId/change
    GET+POST /webhooks/:endpointId/rotate
    GET+POST /webhooks/:endpointId/disable
    GET+POST /addresses/add
    GET+POST /addresses/derive
    GET+POST /addresses/derive/compare
    GET+POST /addresses/changes/:changeId/confirm
    GET+POST /addresses/:address/activate
    GET+POST /settings/project/look
    GET+POST /settings/project/rules
    GET+POST /settings/project/archive
    GET+POST /settings/project/unarchive
    GET /settings/keys
    GET+POST /settings/keys/new
    GET+POST /settings/keys/:keyId/revoke
    GET /settings/people
    GET+POST /settings/people/new
    GET+POST /settings/people/:personId/role
    GET+POST /settings/people/:personId/reset
    GET+POST /settings/people/:personId/remove
    GET /settings/people/:personId
    GET /settings/sessions
    POST /settings/sessions/:sessionId/end
  `,
  'owner of all projects': `
    GET+POST /chain/resume
    GET+POST /settings/projects/new
    GET+POST /settings/receipt-key
    GET /settings/admin-keys
    GET+POST /settings/admin-keys/new
    GET+POST /settings/admin-keys/:adminKeyId/revoke
    GET+POST /settings/notifications/new/:kind
    GET+POST /settings/notifications/:channelId/remove
    GET /settings/audit
    GET /settings/audit.csv
    GET /settings/audit.json
    GET /settings/audit/verification
    GET /settings/system
    GET+POST /settings/system/backup
    GET /settings/doctor
  `,
};

/** Routes for everyone: they reveal nothing, and a stream sends nothing without a session. */
const OPEN = ['GET /*', 'GET /live', 'GET /assets/console.css', 'GET /assets/console.js'];

/** From a route such as `METHOD /path` to its rule, such as `operator of all projects`. */
const DECIDED = new Map(
  Object.entries(WHO).flatMap(([who, list]) =>
    list
      .trim()
      .split(/\s*\n\s*/)
      .flatMap((line) => {
        const [methods = '', path] = line.split(' ');
        const rule = { role: who.split(' ')[0] as Role, isWide: who.endsWith('projects') };
        return methods.split('+').map((method) => [`${method} ${path}`, rule] as const);
      }),
  ),
);

test('every route of the console is decided on here, and nothing else is', () => {
  const found = ROUTES.map(({ method, url }) => `${method} ${url}`);
  expect(found.toSorted()).toEqual([...DECIDED.keys(), ...OPEN].toSorted());
});

test('the table of actions says the same of each route', () => {
  for (const { method, url, action } of ROUTES) {
    if (action === undefined) continue;
    const { role, wide }: Rule = ACTIONS[action];
    expect([method, url, { role, isWide: wide === true }]).toEqual([method, url, DECIDED.get(`${method} ${url}`)]);
  }
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
const CELLS = ROUTES.filter(({ action }) => action !== undefined).flatMap((route) =>
  Object.entries(PEOPLE).map(([name, role]) => [name, role, `${route.method} ${route.url}`, route] as const),
);

/** Path parameters are `-`, which matches nothing. */
function ask(headers: Record<string, string>, { method, url }: Route) {
  const path = url.replace(/:\w+/g, '-');
  return method === 'GET' ? console_.get(path, headers) : console_.post(path, {}, headers);
}

test.each(CELLS)('%s (%s): %s', async (name, role, route, asked) => {
  const rule = DECIDED.get(route);
  const isAllowed =
    rule !== undefined && ROLES.indexOf(role) >= ROLES.indexOf(rule.role) && !(rule.isWide && name === 'olga');
  const { status, text } = await ask({ 'x-actor': name }, asked);
  expect(text.includes('Your role does not allow this')).toBe(!isAllowed);
  if (!isAllowed) expect(status).toBe(403);
  // The subject `-` doesn't exist, and the form has no token.
  else expect([200, 303, 400, 403, 404, 409]).toContain(status);
});

test.each(ROUTES.filter(({ action }) => action !== undefined))('nobody: $method $url', async (route) => {
  const { status, headers } = await ask({ 'x-actor': 'nobody' }, route);
  expect([status, headers.get('location')?.split('?')[0]]).toEqual([303, '/sign-in']);
});

test('nothing of all that changed anything', async () => {
  const rows = await withClient(database.owner, (client) => client.query('select action from operator_actions'));
  expect(rows.rows).toEqual([]);
});
