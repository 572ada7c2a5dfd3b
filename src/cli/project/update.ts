import { encodeId } from '../../domain/ids.ts';
import type { Policy } from '../../domain/policy.ts';
import { type ChangedProject, changeProject } from '../../payments/change-project.ts';
import { insertLogo } from '../../store/logos.ts';
import type { ProjectSettings } from '../../store/projects.ts';
import { operating } from '../address/add.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import { selectProject } from '../select-project.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { type BrandOptions, readBrandOptions, returnUrlProblem, type WantedBrand } from './brand-options.ts';
import { describeProject, fieldsOfProject } from './describe-project.ts';
import { readLifetimeOption, readNameOption, readSurchargeOption, readUnpaidOption } from './options.ts';

export type UpdateProjectOptions = BrandOptions & {
  name?: string;
  policy?: Policy;
  maxSurcharge?: string;
  lifetime?: string;
  maxUnpaid?: string;
  maxUnpaidPerMinute?: string;
  by?: string;
};

/** Changes settings of a project. Invoices that there are keep what they have; their pages show the new brand. */
export async function updateProject(
  terminal: Terminal,
  projectId: string | undefined,
  options: UpdateProjectOptions,
): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const { logo, ...wanted } = await readUpdateOptions(options);
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, projectId);
    const problem = returnUrlProblem(wanted, project.network);
    if (problem !== null) throw notChanged([problem]);
    const logoId = logo ? await insertLogo(db, logo) : logo;
    const settings = logoId === undefined ? wanted : { ...wanted, logoId };
    const outcome = await changeProject(operating(db, operator), project.id, settings);
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
async function readUpdateOptions(options: UpdateProjectOptions): Promise<Partial<ProjectSettings> & WantedBrand> {
  const { name, policy, maxSurcharge, lifetime, maxUnpaid, maxUnpaidPerMinute: perMinute } = options;
  const problems: Problem[] = [];
  const settings = {
    ...(name === undefined ? {} : { name: readNameOption(name, problems) }),
    ...(policy === undefined ? {} : { policy }),
    ...(maxSurcharge === undefined ? {} : { maxSurchargeMicro: readSurchargeOption(maxSurcharge, problems) }),
    ...(lifetime === undefined ? {} : { invoiceLifetimeMs: readLifetimeOption(lifetime, problems) }),
    ...(maxUnpaid === undefined ? {} : { maxUnpaid: readUnpaidOption('--max-unpaid', maxUnpaid, problems) }),
    ...(perMinute === undefined
      ? {}
      : { maxUnpaidPerMinute: readUnpaidOption('--max-unpaid-per-minute', perMinute, problems) }),
    ...(await readBrandOptions(options, problems)),
  };
  if (problems.length > 0) throw notChanged(problems);
  if (Object.keys(settings).length > 0) return settings;
  throw new CliError(
    'INVALID_ARGUMENT',
    'nothing was said to change: give --policy, --max-surcharge, --lifetime, --max-unpaid, --max-unpaid-per-minute, --name, --support, --return-url, --accent or --logo',
  );
}

function notChanged(problems: readonly Problem[]): CliError {
  return new CliError('INVALID_ARGUMENT', 'the project was not changed', { problems });
}

/** What the pages of payers show is read whenever one is opened; the rest is for new invoices. */
const BRAND_CHANGES = ['name', 'supportContact', 'returnUrl', 'accent', 'logoId'];

function notesOn({ project, changed, counts }: ChangedProject): string[] {
  if (Object.keys(changed).length === 0) return ['nothing changed: it is so already'];
  const { policy } = project;
  const active = counts.active[policy];
  const names = Object.keys(changed);
  const notes: string[] = [];
  if (names.some((name) => BRAND_CHANGES.includes(name))) {
    notes.push('payers see this on every page that is opened from now on, also of invoices that there are');
  }
  if (names.some((name) => !BRAND_CHANGES.includes(name))) {
    notes.push('new invoices follow this within 10 seconds; those that there are keep what they have');
  }
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
