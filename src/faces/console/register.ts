import type { FastifyInstance } from 'fastify';
import { createJobs } from '../operator/subjects/jobs.ts';
import { serveAsset } from '../web/assets.ts';
import { html } from '../web/html.ts';
import { addAddressRoutes } from './addresses/addresses.ts';
import { addChainRoutes } from './chain/chain.ts';
import { addInvoiceRoutes } from './invoices/invoice-routes.ts';
import type { ConsoleDeps } from './page/console-deps.ts';
import { ASSETS, type Page } from './page/layout.ts';
import { addLive } from './page/live.ts';
import { createRoutes } from './page/routes.ts';
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
