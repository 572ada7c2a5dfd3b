import type { KeyRing } from '../../core/runtime/key-ring.ts';
import { addressColumn } from '../../core/store/db/address-column.ts';
import { answerOf } from '../../core/store/db/rows-of.ts';
import type { ServiceOptions } from '../../server/context.ts';
import { SCENARIO_NAMES, type Scenario } from '../scenarios/scenarios.ts';
import { payWith } from './pay-invoice.ts';
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

/**
 * Brings forward the deadlines of up to 10,000 pending invoices in a local project (UUID) by this much, but not to before their creation.
 * Returns how many.
 */
const bringDeadlinesForward = answerOf(
  'sandbox-invoices-bring-deadlines-forward',
  { count: 'int4' },
  `select count(hurry_devnet_invoice(checkout_token, greatest(created_at, expires_at - $2 * interval '1 second')))::int4 as count
   from (select checkout_token, created_at, expires_at from invoices where project_id = $1 and status = 'PENDING' order by id desc limit 10000) i`,
  (projectId: string, seconds: number) => [projectId, seconds],
  ([row]) => row?.count ?? 0,
);

/** Finds a project's retired address that can still be paid. */
const findRetiredAddress = answerOf(
  'sandbox-retired-address',
  { address: 'address' },
  `select ${addressColumn('a')} as address from addresses a
   where a.project_id = $1 and a.retired_at is not null and a.barred_at is null order by a.position limit 1`,
  (projectId: string) => [projectId],
  ([row]) => row?.address ?? null,
);
