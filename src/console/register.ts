import type { FastifyInstance } from 'fastify';
import { AppError } from '../domain/errors.ts';
import { decodeId } from '../domain/ids.ts';
import { searchLedger } from '../operator/explain/search.ts';
import { createJobs } from '../operator/jobs/jobs.ts';
import { findRequestId } from '../operator/subjects/requests.ts';
import { showToday } from '../operator/today/show-today.ts';
import { serveAsset } from '../web/assets.ts';
import { html } from '../web/html.ts';
import { addAddressRoutes } from './addresses/addresses-routes.ts';
import { addChainRoutes } from './chain/chain-routes.ts';
import { explainTo } from './invoices/explain.ts';
import { explanationPage, foundPage } from './invoices/invoice-page.ts';
import { addInvoiceRoutes } from './invoices/invoice-routes.ts';
import type { ConsoleDeps } from './page/console-deps.ts';
import { ASSETS, type Page } from './page/layout.ts';
import { addLive } from './page/live.ts';
import { readQuery } from './page/read-fields.ts';
import { type Answer, type Asked, createRoutes } from './page/routes.ts';
import { chooseProject } from './page/visit.ts';
import { addReportRoutes } from './reports/reports-routes.ts';
import { addRequestRoutes } from './requests/requests-routes.ts';
import { addAuditRoutes } from './settings/audit-routes.ts';
import { addMeRoutes } from './settings/me-routes.ts';
import { addPeopleRoutes } from './settings/people-routes.ts';
import { addSettingsRoutes } from './settings/settings-routes.ts';
import { addSystemRoutes } from './settings/system-routes.ts';
import { emptyPage, todayPage } from './today/today-page.ts';
import { addUnmatchedRoutes } from './unmatched/unmatched-routes.ts';
import { addWebhookRoutes } from './webhooks/webhook-routes.ts';

/** The operator's pages. Where nobody is signed in, each leads to `/sign-in`. */
export function registerConsole(app: FastifyInstance, deps: ConsoleDeps): void {
  const routes = createRoutes(app, deps);
  routes.get('/', 'showToday', async ({ visit, request }) => {
    const { project: asked } = readQuery(request, ['project']);
    const project = chooseProject(visit, asked);
    if (project === null) return emptyPage(visit);
    const { projectId } = project;
    return todayPage(visit, project, await showToday(deps, visit.actor, { projectId }));
  });
  routes.get('/find', 'explainSubject', (asked) => find(deps, asked));
  addInvoiceRoutes(routes, deps);
  addUnmatchedRoutes(routes, deps);
  addWebhookRoutes(routes, deps);
  addAddressRoutes(routes, deps);
  addReportRoutes(routes, deps);
  const jobs = createJobs(deps);
  // They end before the server does, which waits for the requests under way.
  app.addHook('preClose', () => jobs.close());
  addChainRoutes(routes, { ...deps, jobs });
  addRequestRoutes(routes, deps);
  addSettingsRoutes(routes, deps);
  addPeopleRoutes(routes, deps);
  addMeRoutes(routes, deps);
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

/** The box at the top: what `explain` takes, and ids of requests. An invoice and a request have pages of their own, and so has what several things fit. */
async function find(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const { q = '', project: asked } = readQuery(request, ['q', 'project']);
  const text = q.trim();
  const requestId = findRequestId(text);
  if (requestId !== null) return { goTo: `/requests/${requestId}` };
  const about = chooseProject(visit, asked);
  try {
    const explanation = await explainTo(deps, visit, { text, projectId: undefined });
    const { form, invoiceId } = explanation.subject;
    if (form === 'invoice') return { goTo: `/invoices/${String(invoiceId)}` };
    return explanationPage(form === 'address' ? 'Address' : 'Transaction', explanation, about, request.id);
  } catch (error) {
    if (!(error instanceof AppError) || !['NOT_FOUND', 'INVALID_ARGUMENT'].includes(error.code)) throw error;
    const projects = visit.projects.flatMap(({ projectId }) => decodeId('prj', projectId) ?? []);
    const found = await deps.db.snapshot((tx) => searchLedger(tx, projects, text));
    if (found.invoices.length + found.transfers.length === 0) throw error;
    return foundPage(visit, text, found, about);
  }
}
