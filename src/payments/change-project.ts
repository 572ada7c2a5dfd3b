import { encodeId } from '../domain/ids.ts';
import { formatAmount, microUsdt } from '../domain/money.ts';
import { type AddressCounts, countAddresses } from '../store/addresses.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject, type Project, type ProjectSettings, updateProject } from '../store/projects.ts';
import type { Operating } from './add-addresses.ts';

/** What was changed, by the names that people see; amounts are decimal strings. */
type ProjectChange = Record<string, { from: string | number; to: string | number }>;

export type ChangedProject = { project: Project; changed: ProjectChange; counts: AddressCounts };

/** Changes settings of a project; what is left out, or is so already, stays as it is. */
export function changeProject(
  { db, now, operator }: Operating,
  projectId: string,
  wanted: Partial<ProjectSettings>,
): Promise<ChangedProject> {
  return db.transaction(async (tx) => {
    const before = await lockProject(tx, projectId);
    const settings = { ...settingsOf(before), ...wanted };
    const changed = compare(shown(settingsOf(before)), shown(settings));
    const counts = await countAddresses(tx, projectId);
    if (Object.keys(changed).length === 0) return { project: before, changed, counts };
    await updateProject(tx, projectId, settings);
    const subject = encodeId('prj', projectId);
    await insertOperatorActions(tx, [
      { projectId, action: 'project.changed', subject, detail: changed, actedBy: operator, actedAt: now() },
    ]);
    return { project: await lockProject(tx, projectId), changed, counts };
  });
}

function settingsOf(project: Project): ProjectSettings {
  return {
    name: project.name,
    policy: project.policy,
    maxSurchargeMicro: project.max_surcharge_micro,
    invoiceLifetimeMs: Number(project.invoice_lifetime_ms),
  };
}

function shown({ name, policy, maxSurchargeMicro, invoiceLifetimeMs }: ProjectSettings) {
  return {
    name,
    policy,
    maxSurcharge: formatAmount(microUsdt(maxSurchargeMicro)),
    lifetimeMs: invoiceLifetimeMs,
  } as const;
}

function compare(before: Record<string, string | number>, after: Record<string, string | number>): ProjectChange {
  const changed: ProjectChange = {};
  for (const [name, from] of Object.entries(before)) {
    const to = after[name] ?? from;
    if (to !== from) changed[name] = { from, to };
  }
  return changed;
}
