import type { Policy } from '../../domain/policy.ts';

/** New addresses that no invoice can take yet. */
export function otherPolicyNote({ projectId }: { projectId: string }, policy: Policy, projectPolicy: Policy): string[] {
  if (policy === projectPolicy) return [];
  return [
    `these serve the policy ${policy}, and the project's is ${projectPolicy}: they take invoices after "quittance project update ${projectId} --policy ${policy}"`,
  ];
}
