import { SCENARIO_NAMES, type Scenario } from '../../devnet/payer/scenarios.ts';
import type { ServiceOptions } from '../../service/service-options.ts';
import { payWith } from './pay-invoice.ts';
import { bringDeadlinesForward } from './sandbox-project.ts';
import type { Sandbox } from './with-sandbox.ts';

/** What `POST /sandbox/…` does. `sandbox` answers once it runs. */
export function createSandboxControls(sandbox: () => Sandbox): NonNullable<ServiceOptions['sandbox']> {
  return {
    scenarios: SCENARIO_NAMES,
    pay: (target, scenario) => payWith(sandbox(), { target, scenario: scenario as Scenario, withInvoice: null }),
    advance: async (seconds) => {
      const { db, projectUuid } = sandbox();
      return { invoices: await bringDeadlinesForward(db, projectUuid, seconds) };
    },
  };
}
