import { AppError } from '../domain/errors.ts';
import { ACTIONS, type ActionName, type Rule } from './actions.ts';
import { type Actor, ROLES } from './actor.ts';

/** Whether an actor may take an action. */
export function isAllowed({ role, projects }: Actor, action: ActionName): boolean {
  const rule: Rule = ACTIONS[action];
  return ROLES.indexOf(role) >= ROLES.indexOf(rule.role) && (rule.wide !== true || projects === null);
}

/** Refuses an action that an actor may not take, and says who may. Errors: `FORBIDDEN`. */
export function authorize(actor: Actor, action: ActionName): void {
  if (isAllowed(actor, action)) return;
  const { name, role } = actor;
  const rule: Rule = ACTIONS[action];
  const allowed = ROLES.slice(ROLES.indexOf(rule.role));
  if (!allowed.includes(role)) {
    const who = allowed.length === 1 ? `the role ${rule.role}` : `one of the roles ${allowed.join(', ')}`;
    throw new AppError('FORBIDDEN', `${action} takes ${who}, and ${name} has the role ${role}: ask an owner`);
  }
  throw new AppError(
    'FORBIDDEN',
    `${action} concerns more than the projects that ${name} may see: it takes the role ${rule.role} for all projects`,
  );
}
