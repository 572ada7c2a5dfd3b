import { AppError } from '../../domain/errors.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Actor } from '../../operator/actor.ts';
import { listAddressChanges } from '../../operator/subjects/address-changes.ts';
import { readPosition } from '../../operator/subjects/addresses.ts';
import { compareBalances, listBalances } from '../../operator/subjects/balances.ts';
import { type CapacityView, showCapacity, showCapacityOfAmount } from '../../operator/subjects/capacity.ts';
import type { ListedProjectView } from '../../operator/subjects/projects.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';
import { type Html, html } from '../../web/html.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readForm, readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { needProject } from '../page/visit.ts';
import { addAddingForm } from './adding-form.ts';
import { addressesPage } from './addresses-page.ts';
import { addChangeRoutes } from './change-forms.ts';
import { comparePage } from './compare-page.ts';
import { addDerivingForms } from './deriving-forms.ts';
import { addSwitchingForms } from './switching-forms.ts';

/** The list with its capacity, the comparison with the chain, and what changes addresses. */
export function addAddressRoutes(routes: Routes, deps: ConsoleDeps): void {
  const measure = createMeasure(deps);
  routes.get('/addresses', 'listBalances', (asked) => list(deps, measure, asked));
  let isComparing = false;
  routes.post('/addresses/compare/:projectId/:after', 'compareBalances', async (asked) => {
    // Each asks nodes for half a minute, and their requests are counted.
    if (isComparing) {
      throw new AppError(
        'CONFLICT',
        'somebody compares addresses with the chain at this moment: try again in a minute',
      );
    }
    isComparing = true;
    try {
      return await compare(deps, asked);
    } finally {
      isComparing = false;
    }
  });
  addAddingForm(routes, deps);
  addDerivingForms(routes, deps);
  addChangeRoutes(routes, deps);
  addSwitchingForms(routes, deps);
}

const SAID: Readonly<Record<string, Html>> = {
  retired: html`It is retired: no new invoice gets it.`,
  active: html`It takes invoices again.`,
};

type Measure = (actor: Actor, project: ListedProjectView) => Promise<CapacityView>;

const MEASURED_MS = 60_000;
const MAX_MEASURED = 1000;

/** Measuring reads up to 100,000 invoices, and the forecast of days does not change in a minute, but with the addresses in use. */
function createMeasure(deps: ConsoleDeps): Measure {
  const measured = new Map<string, { at: UnixMs; view: CapacityView }>();
  return async (actor, { projectId, policy, activeAddresses }) => {
    const key = [projectId, policy, activeAddresses[policy]].join(' ');
    const at = deps.now();
    const known = measured.get(key);
    if (known !== undefined && at >= known.at && at - known.at < MEASURED_MS) return known.view;
    const view = await showCapacity.run(deps, actor, { projectId });
    keepNewest(measured, key, { at, view }, MAX_MEASURED);
    return view;
  };
}

async function list(deps: ConsoleDeps, measure: Measure, { visit, request }: Asked): Promise<Answer> {
  const { project: asked, after, amount, done } = readQuery(request, ['project', 'after', 'amount', 'done']);
  const project = needProject(visit, asked);
  const { projectId, network } = project;
  const balances = await listBalances.run(deps, visit.actor, { projectId, after: readPosition(after) });
  const isFirst = after === undefined;
  const capacity = isFirst ? await measure(visit.actor, project) : null;
  const { data: changes } = await listAddressChanges.run(deps, visit.actor, { projectId });
  const shown = { capacity, balances, changes, amount, after, isFirst };
  const more = { said: SAID[done ?? ''] ?? null, canCompare: deps.networks.includes(network) };
  try {
    const wanted =
      amount === undefined ? null : showCapacityOfAmount.read({ projectId, amount: amount.trim() }, deps.now());
    const ofAmount = wanted && (await showCapacityOfAmount.run(deps, visit.actor, wanted));
    return addressesPage(visit, project, { ...shown, ...more, ofAmount, problem: null });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return addressesPage(visit, project, { ...shown, ...more, ofAmount: null, problem: describeProblem(error) });
  }
}

async function compare(deps: ConsoleDeps, { visit, request, tokens }: Asked): Promise<Answer> {
  const { projectId: asked = '', after } = request.params as { projectId?: string; after?: string };
  const project = needProject(visit, asked);
  const taken = tokens.take(visit.path, readForm(request, ['token']).token);
  if (taken.kind === 'refused') throw new AppError('CONFLICT', taken.reason);
  const { projectId } = project;
  const view = await compareBalances.run(deps, visit.actor, { projectId, after: readPosition(after) });
  return comparePage(visit, project, { view, after });
}
