import type { Json } from '../support/service.ts';
import type { EndpointOperation, Model, ModelEndpoint, Outcome } from './model.ts';

/** Returns why an answer about endpoints is wrong, or changes the model and returns `null`. */
export function judgeEndpoint(
  model: Model,
  project: number,
  operation: EndpointOperation,
  outcome: Outcome,
): string | null {
  const own = [...model.endpoints].filter(([, each]) => each.project === project);
  const told = outcome.endpoints ?? [];
  if (operation.act === 'list') {
    const isAll = told.length === own.length && own.every(([id, each]) => isTold(id, each, told));
    return outcome.status === 200 && isAll ? null : 'other endpoints are listed than there are';
  }
  if (operation.act === 'add') return judgeAdded(model, project, operation, outcome);
  const { act, endpointId } = operation;
  const known = model.endpoints.get(endpointId);
  if (known?.project !== project)
    return isRefused(outcome, 404, 'ENDPOINT_NOT_FOUND') ? null : 'an endpoint of nobody was found';
  const isTaken = act === 'show' || (known.isOwn && !(act === 'disable' && known.isDisabled));
  if (!isTaken) return isRefused(outcome, 409, 'ENDPOINT_CONFLICT') ? null : `${act} was taken of such an endpoint`;
  if (operation.act === 'change') known.description = operation.description;
  if (act === 'disable' || act === 'enable') known.isDisabled = act === 'disable';
  if (outcome.status !== 200 || told.length !== 1) return `${act} was answered with ${outcome.status}`;
  return isTold(endpointId, known, told) ? null : `the endpoint is told otherwise after ${act}`;
}

function judgeAdded(
  model: Model,
  project: number,
  { url, isInvalid }: Extract<EndpointOperation, { act: 'add' }>,
  outcome: Outcome,
): string | null {
  if (isInvalid) return isRefused(outcome, 400, 'INVALID_REQUEST') ? null : 'a wrong URL was taken';
  if ([...model.endpoints.values()].some((each) => each.project === project && each.url === url))
    return isRefused(outcome, 409, 'ENDPOINT_CONFLICT') ? null : 'a second endpoint has the same URL';
  const [made] = outcome.endpoints ?? [];
  if (outcome.status !== 201 || made === undefined) return `a right endpoint was answered with ${outcome.status}`;
  if (model.endpoints.has(made.endpointId)) return 'a new endpoint has the id of another';
  const endpoint = { project, url, description: '', isDisabled: false, isOwn: true };
  model.endpoints.set(made.endpointId, endpoint);
  return isTold(made.endpointId, endpoint, [made]) ? null : 'the new endpoint is told as another';
}

function isRefused({ status, code }: Outcome, wantedStatus: number, wanted: string): boolean {
  return status === wantedStatus && code === wanted;
}

/** Some answers contain only part of it. */
function isTold(id: string, { url, description, isDisabled }: ModelEndpoint, told: readonly Json[]): boolean {
  const found = told.find(({ endpointId }) => endpointId === id);
  return (
    found !== undefined &&
    (found.url ?? url) === url &&
    (found.description ?? description) === description &&
    ((found.status ?? (isDisabled ? 'disabled' : '')) === 'disabled') === isDisabled
  );
}
