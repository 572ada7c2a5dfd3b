import { BlockList, isIP } from 'node:net';
import { AppError, type FieldProblem } from '../../core/domain/errors.ts';
import { encodeId } from '../../core/domain/ids.ts';
import { toIso } from '../../core/domain/time.ts';
import { ACTIONS, type ActionName, type Rule } from './actions.ts';
import { type Actor, type KeyLimits, ROLES, type Role } from './actor.ts';
import { fieldProblem } from './input/problems.ts';

export function isAllowed({ role, projects }: Actor, action: ActionName): boolean {
  const rule: Rule = ACTIONS[action];
  return ROLES.indexOf(role) >= ROLES.indexOf(rule.role) && (rule.wide !== true || projects === null);
}

/** Throws `FORBIDDEN` if the actor may not perform an action. The error names the roles that may perform it. */
export function authorize(actor: Actor, action: ActionName): void {
  if (isAllowed(actor, action)) return;
  const { name, role } = actor;
  const rule: Rule = ACTIONS[action];
  const allowed = ROLES.slice(ROLES.indexOf(rule.role));
  if (!allowed.includes(role)) {
    const who = allowed.length === 1 ? `the role ${rule.role}` : `one of the roles ${allowed.join(', ')}`;
    throw new AppError('FORBIDDEN', `${action} requires ${who}, but ${name} has the role ${role}: ask an owner`);
  }
  throw new AppError(
    'FORBIDDEN',
    `${action} also affects projects that ${name} may not see, so it requires the role ${rule.role} for all projects`,
  );
}

/** Access that an actor wants to grant. `projects` are UUIDs; `null` means all. A key for a single project doesn't have a role. */
type Grant = KeyLimits & { role?: Role; projects?: readonly string[] | null };

/**
 * Refuses to grant more than the actor has: a higher role, more projects, a later expiry, or more addresses. Otherwise a limited key could
 * create an unlimited one. Throws `INVALID_ARGUMENT`, which lists every problem.
 */
export function refuseBeyond({ name, ...own }: Actor, { role, projects, expiresAt, allowedCidrs }: Grant): void {
  const problems: FieldProblem[] = [];
  const add = (field: string, reason: string) => problems.push(fieldProblem(field, reason));
  const { expiresAt: end = null, allowedCidrs: from = null } = own.limits ?? {};
  if (role !== undefined && ROLES.indexOf(role) > ROLES.indexOf(own.role)) {
    add('role', `is ${role}, but ${name} has the role ${own.role}: choose this role or a lower role`);
  }
  if (projects !== undefined && own.projects !== null && !projects?.every((id) => own.projects?.includes(id))) {
    const ids = own.projects.map((id) => encodeId('prj', id)).join(', ');
    add('projects', `must be among the projects that ${name} may see: ${ids}`);
  }
  if (end !== null && (expiresAt === null || expiresAt > end)) {
    const given = expiresAt === null ? 'is missing' : `is ${toIso(expiresAt)}`;
    add('expires', `${given}, but ${name} expires at ${toIso(end)}: use this time or an earlier time`);
  }
  if (from !== null && !allowedCidrs?.every((cidr) => from.some((each) => isWithin(cidr, each)))) {
    const given = allowedCidrs === null ? 'is missing' : `is ${allowedCidrs.join(', ')}`;
    add('allowedIps', `${given}, but ${name} can be used only from ${from.join(', ')}: choose from these addresses`);
  }
  if (problems.length === 0) return;
  throw new AppError('INVALID_ARGUMENT', `nothing was created, because ${name} cannot grant more access than it has`, {
    problems,
  });
}

/** Whether a block contains another one. Both are in the form that `parseCidr` returns. */
function isWithin(inner: string, outer: string): boolean {
  const [[ip = '', bits], [outerIp = '', outerBits]] = [inner.split('/'), outer.split('/')];
  const family = isIP(ip) === 6 ? 'ipv6' : 'ipv4';
  if (isIP(ip) !== isIP(outerIp) || Number(bits) < Number(outerBits)) return false;
  const list = new BlockList();
  list.addSubnet(outerIp, Number(outerBits), family);
  return list.check(ip, family);
}
