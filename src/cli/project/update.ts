import { encodeId } from '../../domain/ids.ts';
import type { Policy } from '../../domain/policy.ts';
import { type ChangedProject, changeProject } from '../../payments/change-project.ts';
import type { ProjectSettings } from '../../store/projects.ts';
import { operating } from '../address/add.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { selectProject } from '../select-project.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { describeProject, fieldsOfProject } from './describe-project.ts';
import { readLifetimeOption, readNameOption, readSurchargeOption } from './options.ts';

export type UpdateProjectOptions = {
  name?: string;
  policy?: Policy;
  maxSurcharge?: string;
  lifetime?: string;
  by?: string;
};

/** Changes settings of a project. Invoices that there are keep what they have. */
export async function updateProject(
  terminal: Terminal,
  projectId: string | undefined,
  options: UpdateProjectOptions,
): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const wanted = readUpdateOptions(options);
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, projectId);
    const outcome = await changeProject(operating(db, operator), project.id, wanted);
    return {
      data: {
        ...describeProject(outcome.project),
        activeAddresses: outcome.counts.active,
        changed: outcome.changed,
      },
      text: formatFields(fieldsOfProject(outcome.project)),
      next: notesOn(outcome).join('\n'),
    };
  });
}

/** All problems at once. */
function readUpdateOptions({ name, policy, maxSurcharge, lifetime }: UpdateProjectOptions): Partial<ProjectSettings> {
  const problems: Problem[] = [];
  const settings = {
    ...(name === undefined ? {} : { name: readNameOption(name, problems) }),
    ...(policy === undefined ? {} : { policy }),
    ...(maxSurcharge === undefined ? {} : { maxSurchargeMicro: readSurchargeOption(maxSurcharge, problems) }),
    ...(lifetime === undefined ? {} : { invoiceLifetimeMs: readLifetimeOption(lifetime, problems) }),
  };
  if (problems.length > 0) throw new CliError('INVALID_ARGUMENT', 'the project was not changed', { problems });
  if (Object.keys(settings).length > 0) return settings;
  throw new CliError(
    'INVALID_ARGUMENT',
    'nothing was said to change: give --policy, --max-surcharge, --lifetime or --name',
  );
}

function notesOn({ project, changed, counts }: ChangedProject): string[] {
  if (Object.keys(changed).length === 0) return ['nothing changed: it is so already'];
  const { policy } = project;
  const active = counts.active[policy];
  const notes = ['new invoices follow this within 10 seconds; those that there are keep what they have'];
  if (changed['policy'] !== undefined) {
    notes.push(
      active === 0
        ? `warning: the project has no active address of the policy ${policy}, and an address keeps its policy for life. Every new invoice is refused (AMOUNT_UNAVAILABLE) until you add some: quittance address add --project ${encodeId('prj', project.id)} --policy ${policy} T…`
        : `active addresses of the policy ${policy}: ${active}`,
    );
  }
  if (changed['maxSurcharge'] !== undefined && policy === 'exact') {
    notes.push('the max surcharge has no effect with the policy exact: payers pay the amount that was asked for');
  }
  return notes;
}
