import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { Project } from '../../store/projects.ts';
import { formatDuration } from '../duration.ts';

/** A project as --json shows it. */
export function describeProject(project: Project) {
  return {
    projectId: encodeId('prj', project.id),
    name: project.name,
    network: project.network,
    policy: project.policy,
    maxSurcharge: formatAmount(microUsdt(project.max_surcharge_micro)),
    lifetimeMs: Number(project.invoice_lifetime_ms),
    createdAt: toIso(project.created_at),
  };
}

/** The same for people. */
export function fieldsOfProject(project: Project): (readonly [string, string])[] {
  const { projectId, name, network, policy, maxSurcharge, lifetimeMs, createdAt } = describeProject(project);
  return [
    ['project', projectId],
    ['name', name],
    ['network', network],
    ['policy', policy],
    ['max surcharge', policy === 'tail' ? `${maxSurcharge} USDT` : `none (${maxSurcharge} USDT with the policy tail)`],
    ['invoice lifetime', formatDuration(lifetimeMs)],
    ['created', createdAt],
  ];
}
