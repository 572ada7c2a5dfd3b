import type { KeyRing } from '../../core/runtime/key-ring.ts';
import type { ServiceOptions } from '../../server/context.ts';
import { SCENARIO_NAMES, type Scenario } from '../scenarios/scenarios.ts';
import { payWith } from './pay-invoice.ts';
import { bringDeadlinesForward, findRetiredAddress } from './sandbox-project.ts';
import { createFreshProject, endProject } from './sandbox-projects.ts';
import type { Sandbox } from './with-sandbox.ts';

/** Implements `/sandbox/…`. `sandbox` returns the sandbox once it's running. Each request acts only for its key's project. */
export function createSandboxControls(
  sandbox: () => Sandbox,
  settings: { keyRing: KeyRing; localTargets: boolean },
): NonNullable<ServiceOptions['sandbox']> {
  return {
    scenarios: SCENARIO_NAMES,
    pay: async ({ projectId: projectUuid, apiKey }, target, scenario) => {
      const running = sandbox();
      const retiredAddress = await findRetiredAddress(running.db, projectUuid);
      const own = { ...running, projectUuid, apiKey, retiredAddress, isOfKey: true };
      return payWith(own, { target, scenario: scenario as Scenario, withInvoice: null });
    },
    advance: async ({ projectId }, seconds) => ({
      invoices: await bringDeadlinesForward(sandbox().db, projectId, seconds),
    }),
    createProject: async (wanted) => createFreshProject({ ...settings, db: sandbox().db }, wanted),
    endProject: async ({ projectId }) => {
      const { db, projectUuid } = sandbox();
      return endProject(db, projectId, projectUuid);
    },
  };
}
