import fc from 'fast-check';
import { at, key, pick } from './command.ts';
import type { EndpointOperation, Model } from './model.ts';

/** `pick` chooses an existing endpoint, `slot` one of the few URLs. */
export type EndpointPlan = {
  kind: 'endpoint';
  key: number;
  act: EndpointOperation['act'];
  pick: number;
  slot: number;
  isInvalid: boolean;
};

export const endpoints: fc.Arbitrary<EndpointPlan> = fc.record({
  ...{ kind: fc.constant('endpoint' as const), key, pick, slot: fc.nat(2) },
  act: fc.constantFrom('add', 'add', 'add', 'list', 'show', 'change', 'disable', 'enable'),
  isInvalid: fc.nat(9).map((n) => n === 0),
});

export function toEndpointOperation(plan: EndpointPlan, { endpoints, sinkUrl }: Model): EndpointOperation {
  const { key, act, slot, isInvalid } = plan;
  const endpointId = at([...endpoints.keys()], plan.pick) ?? '';
  const asked = { kind: 'endpoint', key } as const;
  switch (act) {
    case 'add':
      return { ...asked, act, isInvalid, url: `${sinkUrl}/${slot}` };
    case 'list':
      return { ...asked, act };
    case 'change':
      return { ...asked, act, endpointId, description: `of slot ${slot}` };
    default:
      return { ...asked, act, endpointId };
  }
}
