import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { surchargeOf } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { OwnRule } from '../../store/db/address-column.ts';
import type { Database } from '../../store/db/database.ts';
import { countAddresses } from '../../store/ledger/addresses.ts';
import {
  lockProject,
  type Project,
  type ProjectSettings,
  updateProject as update,
} from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { fieldProblem } from '../input/field-error.ts';
import { recordActions } from '../record-actions.ts';
import {
  describeSurcharge,
  linkProblems,
  readSettings,
  type SettingsInput,
  storeLogo,
  type WantedSettings,
} from './read-settings.ts';
import { selectProject } from './select-project.ts';
import { viewProject } from './view-project.ts';
import type { UpdatedProjectView } from './views.ts';

/** Reads what is to be changed, with all problems at once. Errors: `INVALID_ARGUMENT`. */
export function readProjectChange(input: SettingsInput): WantedSettings {
  const problems: FieldProblem[] = [];
  const settings = readSettings(input, problems);
  refuse(problems);
  return settings;
}

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the project was not changed', { problems });
}

type Changed = UpdatedProjectView['changed'];
type Shown = Changed[string]['to'];

/**
 * Changes settings of a project; what is left out, or is so already, stays as it is. Invoices that there are keep what they have;
 * their pages show the new brand. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`, `ADDRESS_NOT_VOUCHED`.
 */
export async function updateProject(
  { db, now }: { db: Database; now(): UnixMs },
  actor: Actor,
  { projectId, ...wanted }: WantedSettings & { projectId: string | undefined },
): Promise<UpdatedProjectView> {
  const { id, network } = await selectProject(db, actor, projectId);
  refuse(linkProblems(wanted, network));
  const given = await storeLogo(db, wanted);
  return db.transaction(async (tx) => {
    const before = await lockProject(tx, id);
    const settings = { ...before, ...given, maxSurchargeMicro: surchargeAfter(before, given) };
    const changed = compare(shown(before), shown(settings));
    const { active } = await countAddresses(tx, id);
    const unvouched = 'policy' in changed || 'maxSurcharge' in changed ? db.refuseRule(ruleOf(before, settings)) : null;
    if (unvouched !== null) throw new AppError('ADDRESS_NOT_VOUCHED', `${unvouched}. Nothing was changed`);
    if (Object.keys(changed).length > 0) {
      await update(tx, before, settings);
      const subject = encodeId('prj', id);
      await recordActions(tx, actor, now(), [{ projectId: id, action: 'project.changed', subject, detail: changed }]);
    }
    return { ...viewProject(settings), activeAddresses: active, changed };
  });
}

/**
 * A limit that was left as a policy has it, or that holds no words of the next one, follows a change of the policy. Errors:
 * `INVALID_ARGUMENT` for a given one that the policy does not take.
 */
function surchargeAfter(
  before: ProjectSettings,
  { policy = before.policy, maxSurchargeMicro }: WantedSettings,
): bigint {
  const { leastMicro, usualMicro } = surchargeOf(policy);
  if (maxSurchargeMicro !== undefined) {
    const given = formatAmount(microUsdt(maxSurchargeMicro));
    if (maxSurchargeMicro < leastMicro) refuse([fieldProblem('maxSurcharge', describeSurcharge(given, policy))]);
    return maxSurchargeMicro;
  }
  if (policy === before.policy) return before.maxSurchargeMicro;
  const isUsual = before.maxSurchargeMicro === surchargeOf(before.policy).usualMicro;
  return isUsual || before.maxSurchargeMicro < leastMicro ? usualMicro : before.maxSurchargeMicro;
}

function ruleOf({ id, network }: Project, { policy, maxSurchargeMicro }: ProjectSettings): OwnRule {
  return { projectId: id, network, policy, maxSurchargeMicro };
}

/** By the names that people see. Amounts are decimal strings, a logo is its id, and `null` is what a project does not have. */
function shown({ maxSurchargeMicro, invoiceLifetimeMs, ...others }: ProjectSettings): Record<string, Shown> {
  const { name, policy, supportContact, returnUrl, embedOrigins, accent, logoId, maxUnpaid, maxUnpaidPerMinute } =
    others;
  return {
    ...{ name, policy, supportContact, returnUrl, embedOrigins, accent, logoId, maxUnpaid, maxUnpaidPerMinute },
    maxSurcharge: formatAmount(microUsdt(maxSurchargeMicro)),
    lifetimeMs: invoiceLifetimeMs,
  };
}

function compare(before: Record<string, Shown>, after: Record<string, Shown>): Changed {
  const changed: Changed = {};
  for (const [name, from] of Object.entries(before)) {
    const to = after[name] ?? null;
    if (to !== from) changed[name] = { from, to };
  }
  return changed;
}
