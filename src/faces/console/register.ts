import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { createTally } from '../../core/runtime/log.ts';
import { createJobs } from '../operator/subjects/jobs.ts';
import { serveAsset } from '../web/assets.ts';
import { html } from '../web/html.ts';
import { createLiveStreams, type LiveStream, STREAM_HEADERS } from '../web/live-streams.ts';
import { hijackForStream } from '../web/shed-load.ts';
import { addAddressRoutes } from './addresses/addresses.ts';
import { addChainRoutes } from './chain/chain.ts';
import { addInvoiceRoutes } from './invoices/invoice-routes.ts';
import { ASSETS, HEADERS, type Page } from './page/layout.ts';
import { type ConsoleDeps, createRoutes } from './page/routes.ts';
import { addReportRoutes } from './reports/reports-routes.ts';
import { addRequestRoutes } from './requests/requests-routes.ts';
import { addAuditRoutes } from './settings/audit-routes.ts';
import { addPeopleRoutes } from './settings/people.ts';
import { addSettingsRoutes } from './settings/settings-routes.ts';
import { addSystemRoutes } from './settings/system-routes.ts';
import { addTodayRoute } from './today/today-page.ts';
import { addUnmatchedRoutes } from './unmatched/unmatched-routes.ts';
import { addWebhookRoutes } from './webhooks/webhook-routes.ts';

/** Adds the operators' pages. Without a session, every page redirects to `/sign-in`. */
export function registerConsole(app: FastifyInstance, deps: ConsoleDeps): void {
  const routes = createRoutes(app, deps);
  addTodayRoute(routes, deps);
  addInvoiceRoutes(routes, deps);
  addUnmatchedRoutes(routes, deps);
  addWebhookRoutes(routes, deps);
  addAddressRoutes(routes, deps);
  addReportRoutes(routes, deps);
  const jobs = createJobs(deps);
  // Jobs end before the server does, because it waits for requests in progress.
  app.addHook('preClose', () => jobs.close());
  addChainRoutes(routes, { ...deps, jobs });
  addRequestRoutes(routes, deps);
  addSettingsRoutes(routes, deps);
  addPeopleRoutes(routes, deps);
  addAuditRoutes(routes, deps);
  addSystemRoutes(routes, deps);
  routes.notFound(unknownPage);
  addLive(app, deps);
  for (const asset of Object.values(ASSETS)) serveAsset(app, asset);
}

function unknownPage(url: string): Page {
  const path = (url.split('?', 1)[0] ?? '').slice(0, 200);
  return {
    ...{ title: 'Not found', status: 404 },
    main: html`<section class="card" role="alert"><p>There is no page at ${path}.</p><p><a href="/">Today</a></p></section>`,
  };
}

/** Fewer people than this look at a console at once. */
const MAX_STREAMS = 200;
/** How often pages are refreshed without any notification, for changes that the database doesn't announce, such as alarms. */
const TICK_MS = 10_000;
/** Changes within this time count as one change. */
const GATHER_MS = 500;

/**
 * `GET /live` tells signed-in visitors that something may have changed. It doesn't say what changed: the page then requests itself again,
 * with its visitor's rights. Answers 204 if no one is signed in, which makes browsers stop asking.
 */
function addLive(app: FastifyInstance, deps: ConsoleDeps): void {
  const streams = createLiveStreams(deps);
  const open = new Set<LiveStream>();
  const tally = createTally(deps.now);
  const tell = () => {
    for (const stream of open) stream.send('changed', String(deps.now()), '');
  };
  let gathering: NodeJS.Timeout | undefined;
  const heard = () => {
    gathering ??= setTimeout(() => {
      gathering = undefined;
      tell();
    }, GATHER_MS);
  };
  deps.onChange(heard);
  const ticking = setInterval(tell, TICK_MS);
  app.addHook('preClose', async () => {
    clearInterval(ticking);
    clearTimeout(gathering);
    streams.stop();
  });
  app.get('/live', { schema: { hide: true } }, async (request, reply) => {
    reply.headers({ ...HEADERS, ...STREAM_HEADERS });
    if ((await deps.findActor(request)) === null) return reply.code(204).send();
    // A pipelined request doesn't have its own connection, so its end couldn't be noticed.
    if (open.size >= MAX_STREAMS || reply.raw.socket === null || request.method === 'HEAD') {
      const requests = open.size < MAX_STREAMS ? null : tally.note('full');
      if (requests !== null)
        deps.log.warn(
          { requestId: request.id, open: open.size, requests },
          'too many console pages are open, so some do not update automatically',
        );
      return reply.code(503).header('Retry-After', '60').send();
    }
    hijackForStream(request, reply);
    const stream = streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
    open.add(stream);
    reply.raw.once('close', () => open.delete(stream));
    return reply;
  });
}
