import type { FastifyInstance } from 'fastify';
import { decodeId, encodeId } from '../../core/domain/ids.ts';
import { findSubject } from '../operator/explain/explain.ts';
import type { Explanation } from '../operator/explain/explanation.ts';
import { createJobs } from '../operator/subjects/jobs.ts';
import { showToday } from '../operator/today/show-today.ts';
import { serveAsset } from '../web/assets.ts';
import { html } from '../web/html.ts';
import { addAddressRoutes } from './addresses/addresses.ts';
import { addChainRoutes } from './chain/chain.ts';
import { addInvoiceRoutes, explanationPage, foundPage } from './invoices/invoice-routes.ts';

import type { ConsoleDeps } from './page/console-deps.ts';
import { ASSETS, type Page } from './page/layout.ts';
import { addLive } from './page/live.ts';
import { type Answer, type Asked, createRoutes } from './page/routes.ts';
import { chooseProject, readQuery } from './page/visit.ts';

import { addReportRoutes } from './reports/reports-routes.ts';
import { addRequestRoutes } from './requests/requests-routes.ts';
import { addAuditRoutes } from './settings/audit-routes.ts';
import { addMeRoutes } from './settings/me.ts';
import { addPeopleRoutes } from './settings/people.ts';
import { addSettingsRoutes } from './settings/settings-routes.ts';
import { addSystemRoutes } from './settings/system-routes.ts';
import { emptyPage, todayPage } from './today/today-page.ts';
import { addUnmatchedRoutes } from './unmatched/unmatched-routes.ts';
import { addWebhookRoutes } from './webhooks/webhook-routes.ts';

/** Adds the operators' pages. Without a session, every page redirects to `/sign-in`. */
export function registerConsole(app: FastifyInstance, deps: ConsoleDeps): void {
  const routes = createRoutes(app, deps);
  routes.get('/', 'showToday', async ({ visit, request }) => {
    const { project: asked } = readQuery(request, ['project']);
    const project = chooseProject(visit, asked);
    if (project === null) return emptyPage(visit);
    const { projectId } = project;
    return todayPage(visit, project, await showToday(deps, visit.actor, { projectId }));
  });
  routes.get('/find', 'findSubject', (asked) => find(deps, asked));
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

/** The explanation is empty, because the invoice's own page explains it. */
const nameInvoice = async (_db: unknown, { id }: { id: string }): Promise<Explanation> => ({
  ...{ verdict: [], subject: { form: 'invoice', invoiceId: encodeId('inv', id) }, fields: [] },
  ...{ timeline: [], omissions: [], next: [] },
});

/** The kinds of ids that have a page. */
const PAGES = [
  ['evt', '/events'],
  ['req', '/requests'],
  ['trf', '/unmatched'],
  ['whe', '/webhooks'],
] as const;

/**
 * The search box at the top. Accepts everything that `explain` does, and ids of things with their own page, in all projects that the person
 * may see. `in` selects one project, for an address that several projects have.
 */
async function find(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const { q = '', project: asked, in: projectId } = readQuery(request, ['q', 'project', 'in']);
  const [text, id] = [q.trim(), q.trim().toLowerCase()];
  const page = PAGES.find(([kind]) => decodeId(kind, id) !== null);
  if (page !== undefined) return { goTo: `${page[1]}/${id}` };
  const about = chooseProject(visit, asked);
  const answer = await findSubject(deps, visit.actor, { text, projectId }, nameInvoice);
  if (!('verdict' in answer)) return foundPage(visit, text, answer, about);
  const { form, invoiceId } = answer.subject;
  if (form === 'invoice') return { goTo: `/invoices/${String(invoiceId)}` };
  return explanationPage(form === 'address' ? 'Address' : 'Transaction', answer, about, request.id);
}
