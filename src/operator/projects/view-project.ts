import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { toIso } from '../../domain/time.ts';
import type { Project } from '../../store/ledger/projects.ts';
import type { ProjectView } from './views.ts';

export function viewProject({ id, maxSurchargeMicro, invoiceLifetimeMs, ...project }: Project): ProjectView {
  return {
    projectId: encodeId('prj', id),
    name: project.name,
    network: project.network,
    policy: project.policy,
    maxSurcharge: formatAmount(microUsdt(maxSurchargeMicro)),
    lifetimeMs: invoiceLifetimeMs,
    maxUnpaid: project.maxUnpaid,
    maxUnpaidPerMinute: project.maxUnpaidPerMinute,
    supportContact: project.supportContact,
    returnUrl: project.returnUrl,
    embedOrigins: project.embedOrigins,
    accent: project.accent,
    logoId: project.logoId,
    createdAt: toIso(project.createdAt),
    archivedAt: project.archivedAt === null ? null : toIso(project.archivedAt),
  };
}
