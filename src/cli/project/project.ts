import { accentPalette } from '../../domain/brand/colour.ts';
import { AppError } from '../../domain/errors.ts';
import { POLICIES } from '../../domain/policy.ts';
import { formatFields } from '../../operator/command-text.ts';
import { writeText } from '../../operator/command-words.ts';
import { formatDuration } from '../../operator/input/duration.ts';
import { type ExpectedOrdersInput, readNewProject } from '../../operator/projects/create-project.ts';
import {
  archiveProjectOperation,
  createProjectOperation,
  listProjectsOperation,
  showProjectOperation,
  unarchiveProjectOperation,
  updateProjectOperation,
} from '../../operator/projects/operations.ts';
import type { NeededInput, SettingsInput } from '../../operator/projects/read-settings.ts';
import { readProjectChange } from '../../operator/projects/update-project.ts';
import type {
  ListedProjectView,
  NewProjectView,
  ProjectView,
  UpdatedProjectView,
} from '../../operator/projects/views.ts';
import { askPerson, hasPerson } from '../terminal/ask-person.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { readLogoFile } from './read-logo-file.ts';

type Removable = 'support' | 'returnUrl' | 'embedOrigins' | 'accent' | 'logo';

/** Settings as the options give them: `false` is what `--no-…` gives. */
type Typed = Omit<SettingsInput, Removable> & {
  [Name in Removable]?: string | false | undefined;
};

type Brand = Required<Pick<SettingsInput, Removable>>;

async function readBrand({ support, returnUrl, embedOrigins, accent, logo }: Typed): Promise<Brand> {
  const kept = (text: string | false | undefined) => (text === false ? null : text);
  return {
    ...{ support: kept(support), returnUrl: kept(returnUrl), embedOrigins: kept(embedOrigins), accent: kept(accent) },
    logo: typeof logo === 'string' ? await readLogoFile(logo) : logo === false ? null : undefined,
  };
}

export async function printNewProject(
  terminal: Terminal,
  typed: Typed & NeededInput & ExpectedOrdersInput & { network: string },
): Promise<Result> {
  const brand = await readBrand(typed);
  const { expected } = readNewProject({ ...typed, ...brand });
  const mayAsk = !terminal.json && hasPerson(terminal);
  const given = {
    ...{ ...typed, ...encoded(brand) },
    ...(mayAsk && brand.support === undefined ? await askForContact(terminal) : {}),
    ...(mayAsk && expected === null ? await askForOrders(terminal) : {}),
  };
  const data = await runOperation(terminal, createProjectOperation, given, { mayCreate: true });
  return {
    data,
    text: formatFields([...fieldsOf(data), ['addresses needed', needOf(data)]]),
    next: [
      ...(data.warning === undefined ? [] : [`warning: ${writeText(data.warning)}`]),
      ...(data.supportContact === null ? [noContact(data)] : []),
      `next: ${addAddresses(data)}, then quittance key create --project ${data.projectId}`,
    ].join('\n'),
  };
}

function noContact({ projectId }: ProjectView): string {
  return `warning: there is no support contact, so payers who need help see only the shop's name: quittance project update ${projectId} --support help@…`;
}

/** A logo that was read, which stands in base64 on the wire. */
function encoded({ logo, ...brand }: Brand) {
  return { ...brand, logo: logo && { file: logo.file, content: Buffer.from(logo.content).toString('base64') } };
}

/** An empty line says nothing: the project is made all the same. */
async function askForContact(terminal: Terminal): Promise<Pick<SettingsInput, 'support'>> {
  const question = 'Where do payers find help? An e-mail address, an https:// link, or words (Enter: nowhere) ';
  return { support: (await askPerson(terminal, question)) || undefined };
}

/** The same. */
async function askForOrders(terminal: Terminal): Promise<ExpectedOrdersInput> {
  const ordersPerDay = await askPerson(terminal, 'How many orders a day do you expect, paid or not? (Enter: unknown) ');
  if (!ordersPerDay) return {};
  const prices = await askPerson(terminal, 'Of how many different amounts, about evenly? (Enter: one) ');
  return { ordersPerDay, prices: prices || undefined };
}

function needOf({ addressNeed: need }: NewProjectView): string | null {
  if (need === undefined) return null;
  const days = Math.floor(need.daysOfOne);
  const each = days < 1 ? 'less than a day' : `${days} ${days === 1 ? 'day' : 'days'}`;
  return `${need.for90Days} for 90 days, ${need.for365Days} for a year; one lasts ${each}`;
}

function addAddresses({ projectId, addressNeed: need }: NewProjectView): string {
  const add = `quittance address add --project ${projectId} T…`;
  if (need === undefined) return add;
  return `add ${need.for90Days} addresses with ${add}, or a few with quittance address derive --project ${projectId} --xpub xpub6… --count 3, after which up to 100 more are derived by themselves`;
}

export async function printUpdatedProject(
  terminal: Terminal,
  projectId: string | undefined,
  { by, ...typed }: Typed & { by?: string | undefined },
): Promise<Result> {
  const brand = await readBrand(typed);
  const wanted = readProjectChange({ ...typed, ...brand });
  if (Object.keys(wanted).length === 0) {
    throw new AppError(
      'INVALID_ARGUMENT',
      'nothing was said to change: give --policy, --max-surcharge, --lifetime, --max-unpaid, --max-unpaid-per-minute, --name, --support, --return-url, --embed-origins, --accent or --logo',
    );
  }
  const data = await runOperation(terminal, updateProjectOperation, { ...typed, ...encoded(brand), projectId }, { by });
  return { data, text: formatFields(fieldsOf(data)), next: notesOn(data).join('\n') };
}

/** Changes of these settings show on every payer's page that is opened; changes of the others apply to new invoices. */
const BRAND_CHANGES = ['name', 'supportContact', 'returnUrl', 'embedOrigins', 'accent', 'logoId'];

function notesOn({ projectId, policy, changed, activeAddresses }: UpdatedProjectView): string[] {
  const names = Object.keys(changed);
  if (names.length === 0) return ['nothing changed: it is so already'];
  const active = activeAddresses[policy];
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
        ? `warning: the project has no active address of the policy ${policy}, and an address keeps its policy for life. Every new invoice is refused (AMOUNT_UNAVAILABLE) until you add some: quittance address add --project ${projectId} --policy ${policy} T…`
        : `active addresses of the policy ${policy}: ${active}`,
    );
  }
  if (changed['maxSurcharge'] !== undefined && policy === 'exact') {
    notes.push('the max surcharge has no effect with the policy exact: payers pay the amount that was asked for');
  }
  return notes;
}

const PROJECTS: readonly Column<ListedProjectView>[] = [
  ['PROJECT', ({ projectId }) => projectId],
  ['NETWORK', ({ network }) => network],
  ['POLICY', ({ policy }) => policy],
  ['ADDRESSES', ({ activeAddresses, policy }) => String(activeAddresses[policy])],
  ['CREATED', ({ createdAt }) => createdAt],
  ['NAME', ({ name }) => name],
];

export async function printProjects(
  terminal: Terminal,
  { archived = false }: { archived?: boolean | undefined },
): Promise<Result> {
  const data = await runOperation(terminal, listProjectsOperation, { archived: archived || undefined });
  const none = archived ? 'no project is archived' : 'no project in use: make one with "quittance project create"';
  return { data, text: tableOf(PROJECTS, data.data), ...(data.data.length === 0 ? { next: none } : {}) };
}

export async function printArchived(
  terminal: Terminal,
  command: 'archive' | 'unarchive',
  { projectId, by }: { projectId: string; by?: string | undefined },
): Promise<Result> {
  const operation = command === 'archive' ? archiveProjectOperation : unarchiveProjectOperation;
  const data = await runOperation(terminal, operation, { projectId }, { by });
  const note =
    command === 'archive'
      ? `new orders are refused (PROJECT_ARCHIVED); what the project has can be read and paid. To put it back: quittance project unarchive ${data.projectId}`
      : 'its keys make invoices again';
  return {
    data,
    text: formatFields(fieldsOf(data)),
    next: data.isChanged ? note : 'nothing changed: it is so already',
  };
}

export async function printProject(terminal: Terminal, projectId: string | undefined): Promise<Result> {
  const { view, hasAccountKeys } = await runOperation(terminal, showProjectOperation, { projectId });
  const { autoDerived, autoDeriveLimit } = view;
  return {
    data: view,
    text: formatFields([
      ...fieldsOf(view),
      ['active addresses', describeActive(view)],
      ['retired addresses', String(view.retiredAddresses)],
      ['derived by itself', hasAccountKeys ? `${autoDerived} of at most ${autoDeriveLimit}` : null],
      ['active keys', String(view.activeKeys)],
      ['webhook endpoints', String(view.webhookEndpoints)],
    ]),
  };
}

/** Those of the project's policy, and of others that it has. */
function describeActive({ policy, activeAddresses: active }: ListedProjectView): string {
  const shown = POLICIES.filter((each) => each === policy || active[each] > 0);
  return shown.map((each) => `${active[each]} ${each}`).join(', ');
}

function fieldsOf(project: ProjectView): (readonly [string, string | null])[] {
  const { projectId, name, network, policy, maxSurcharge, lifetimeMs, maxUnpaid, maxUnpaidPerMinute } = project;
  return [
    ['project', projectId],
    ['name', name],
    ['network', network],
    ['policy', policy],
    ['max surcharge', policy === 'exact' ? `none (${maxSurcharge} USDT with a tail)` : `${maxSurcharge} USDT`],
    ['invoice lifetime', formatDuration(lifetimeMs)],
    ['max unpaid', maxUnpaid === null ? 'no limit' : `${maxUnpaid} of the last 30 minutes`],
    ['max unpaid a minute', maxUnpaidPerMinute === null ? 'no limit' : String(maxUnpaidPerMinute)],
    ['support', project.supportContact],
    ['return link', project.returnUrl],
    ['shown in frames of', project.embedOrigins],
    ['accent', project.accent === null ? null : showAccent(project.accent)],
    ['logo', project.logoId],
    ['created', project.createdAt],
    ['archived', project.archivedAt],
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
