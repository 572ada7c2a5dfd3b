import { encodeId } from '../domain/ids.ts';
import { formatAmount, microUsdt } from '../domain/money.ts';
import { type AddressCounts, countAddresses } from '../store/addresses.ts';
import { insertOperatorActions } from '../store/operator-actions.ts';
import { lockProject, type Project, type ProjectSettings, updateProject } from '../store/projects.ts';
import type { Operating } from './add-addresses.ts';

/** Amounts are decimal strings, a logo is its id, and `null` is what a project does not have. */
type Shown = string | number | null;

/** What was changed, by the names that people see. */
type ProjectChange = Record<string, { from: Shown; to: Shown }>;

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
    supportContact: project.support_contact,
    returnUrl: project.return_url,
    accent: project.accent,
    logoId: project.logo_id,
    maxUnpaid: project.max_unpaid,
    maxUnpaidPerMinute: project.max_unpaid_per_minute,
  };
}

function shown({ maxSurchargeMicro, invoiceLifetimeMs, ...others }: ProjectSettings): Record<string, Shown> {
  return { ...others, maxSurcharge: formatAmount(microUsdt(maxSurchargeMicro)), lifetimeMs: invoiceLifetimeMs };
}

function compare(before: Record<string, Shown>, after: Record<string, Shown>): ProjectChange {
  const changed: ProjectChange = {};
  for (const [name, from] of Object.entries(before)) {
    const to = after[name] ?? null;
    if (to !== from) changed[name] = { from, to };
  }
  return changed;
}
