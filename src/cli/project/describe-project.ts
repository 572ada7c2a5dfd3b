import { accentPalette } from '../../domain/colour.ts';
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
    maxUnpaid: project.max_unpaid,
    maxUnpaidPerMinute: project.max_unpaid_per_minute,
    supportContact: project.support_contact,
    returnUrl: project.return_url,
    accent: project.accent,
    logoId: project.logo_id,
    createdAt: toIso(project.created_at),
  };
}

/** The same for people; what is `null` is not there. */
export function fieldsOfProject(project: Project): (readonly [string, string | null])[] {
  const described = describeProject(project);
  const { projectId, name, network, policy, maxSurcharge, lifetimeMs, createdAt } = described;
  return [
    ['project', projectId],
    ['name', name],
    ['network', network],
    ['policy', policy],
    ['max surcharge', policy === 'tail' ? `${maxSurcharge} USDT` : `none (${maxSurcharge} USDT with the policy tail)`],
    ['invoice lifetime', formatDuration(lifetimeMs)],
    ['max unpaid', described.maxUnpaid === null ? 'no limit' : `${described.maxUnpaid} of the last 30 minutes`],
    ['max unpaid a minute', described.maxUnpaidPerMinute === null ? 'no limit' : String(described.maxUnpaidPerMinute)],
    ['support', described.supportContact],
    ['return link', described.returnUrl],
    ['accent', described.accent === null ? null : showAccent(described.accent)],
    ['logo', described.logoId],
    ['created', createdAt],
  ];
}

/** The colour that was given, and what pages make of it in a scheme where it has too little contrast. */
function showAccent(accent: string): string {
  const { light, dark } = accentPalette(accent);
  const moved = [
    ...(light.accent === accent ? [] : [`${light.accent} on light`]),
    ...(dark.accent === accent ? [] : [`${dark.accent} on dark`]),
  ];
  return moved.length === 0 ? accent : `${accent}; for enough contrast ${moved.join(' and ')}`;
}
