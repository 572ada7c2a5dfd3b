import { createHash } from 'node:crypto';
import { accentPalette } from '../../../core/domain/brand/colour.ts';
import { addressNeed } from '../../../core/domain/capacity.ts';
import { AppError, conflict, type FieldProblem } from '../../../core/domain/errors.ts';
import { encodeId, uuidV7 } from '../../../core/domain/ids.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { isNetwork, NETWORKS } from '../../../core/domain/network.ts';
import { POLICIES, surchargeOf } from '../../../core/domain/policy.ts';
import type { UnixMs } from '../../../core/domain/time.ts';
import { warnUnwatched } from '../../../core/payments/watched-networks.ts';
import { type Static, Type } from '../../../core/runtime/type.ts';
import { resolveAlarms } from '../../../core/store/chain/alarms.ts';
import type { OwnRule } from '../../../core/store/db/address-column.ts';
import type { Sql } from '../../../core/store/db/database.ts';
import { answerOf } from '../../../core/store/db/rows-of.ts';
import { count, statement } from '../../../core/store/db/statement.ts';
import { listAccountKeys } from '../../../core/store/ledger/account-keys.ts';
import { countAddresses, countAddressesByProject } from '../../../core/store/ledger/addresses.ts';
import { findLogo, type Logo } from '../../../core/store/ledger/logos.ts';
import {
  findProject,
  insertProject,
  lockProject,
  type Project,
  type ProjectSettings,
  markProjectArchived as putAway,
  findProjects as rowsOf,
  saveProject as update,
} from '../../../core/store/ledger/projects.ts';
import { listWebhookEndpoints } from '../../../core/store/outbox/webhook-endpoints.ts';
import type { Actor } from '../actor.ts';
import { type Column, columnsText, fieldsText } from '../command-words.ts';
import {
  choice,
  type Field,
  id,
  listOf,
  maybe,
  of,
  part,
  Said,
  type Shown,
  schemaOf,
  show,
  text,
  time,
  usdt,
  whole,
  yes,
} from '../fields.ts';
import { clip, fieldProblem } from '../input/problems.ts';
import { formatDuration } from '../input/readers.ts';
import { localOperation, type OperationDeps, operation } from '../operation.ts';
import { argument, BY, flag, projectArgument } from '../option.ts';
import { recordAction } from '../record-actions.ts';
import { selectProject } from '../select.ts';
import { keyStatusOf, listApiKeys } from './keys.ts';
import {
  describeSurcharge,
  linkProblems,
  newProject,
  readExpected,
  readSettings,
  settings,
  type WantedSettings,
} from './project-settings.ts';

const insertLogoRow = statement(
  'logo-insert',
  {},
  'insert into logos (id, type, content) values ($1, $2, $3) on conflict (id) do nothing',
);

/** Stores a logo. A logo's id is the first 32 hex characters of the SHA-256 of its bytes. */
export async function insertLogo(db: Sql, { type, content }: Logo): Promise<string> {
  const id = createHash('sha256').update(content).digest('hex').slice(0, 32);
  await db.run(insertLogoRow, [id, type, content]);
  return id;
}

/** Stores the new logo, and replaces the logo in the settings with its id. */
async function storeLogo<Wanted extends WantedSettings>(
  db: Sql,
  { logo, ...settings }: Wanted,
): Promise<Omit<Wanted, 'logo'> & { logoId?: string | null }> {
  if (logo === undefined) return settings;
  return { ...settings, logoId: logo === null ? null : await insertLogo(db, logo) };
}

/** `maxSurcharge` is USDT as a decimal string. `null` means that there's no limit, or that the setting isn't set. */
const shown = {
  projectId: of('id', id('prj')),
  ...{ name: text, network: choice(NETWORKS), policy: choice(POLICIES) },
  ...{ maxSurcharge: of('maxSurchargeMicro', usdt), lifetimeMs: of('invoiceLifetimeMs', whole) },
  ...{ maxUnpaid: maybe(whole), maxUnpaidPerMinute: maybe(whole) },
  ...{ supportContact: maybe(text), returnUrl: maybe(text), embedOrigins: maybe(text), accent: maybe(text) },
  ...{ logoId: maybe(text), createdAt: time, archivedAt: maybe(time) },
};
export type ProjectView = Shown<typeof shown>;

/** How many addresses are in use, by policy. */
export const activeAddresses = part({ tail: whole, 'tail-4': whole, 'tail-3': whole, exact: whole });
/** Counts the addresses of every policy. */
export const countActive = (active: ReturnType<typeof activeAddresses.show>) =>
  Object.values(active).reduce((sum, count) => sum + count, 0);

const listed = { ...shown, activeAddresses };
export type ListedProjectView = Shown<typeof listed>;

const FIELDS: readonly Column<ProjectView>[] = [
  ['project', 'projectId'],
  ['name', 'name'],
  ['network', 'network'],
  ['policy', 'policy'],
  [
    'max surcharge',
    ({ policy, maxSurcharge }) =>
      policy === 'exact' ? `none (${maxSurcharge} USDT with a tail policy)` : `${maxSurcharge} USDT`,
  ],
  ['invoice lifetime', ({ lifetimeMs }) => formatDuration(lifetimeMs)],
  ['max unpaid', ({ maxUnpaid }) => (maxUnpaid === null ? 'no limit' : `${maxUnpaid} in 30 minutes`)],
  ['max unpaid per minute', 'maxUnpaidPerMinute', 'no limit'],
  ['support', 'supportContact'],
  ['return link', 'returnUrl'],
  ['embedded in', 'embedOrigins'],
  ['accent', ({ accent }) => accent && showAccent(accent)],
  ['logo', 'logoId'],
  ['created', 'createdAt'],
  ['archived', 'archivedAt'],
];

/** Shows the chosen colour, and an adjusted colour for each colour scheme (light or dark) in which its contrast is too low. */
function showAccent(accent: string): string {
  const palette = accentPalette(accent);
  const moved = (['light', 'dark'] as const)
    .filter((scheme) => palette[scheme].accent !== accent)
    .map((scheme) => `${palette[scheme].accent} on ${scheme}`);
  return moved.length === 0 ? accent : `${accent}; adjusted for contrast: ${moved.join(' and ')}`;
}

type Deps = Pick<OperationDeps, 'db' | 'now'>;

/**
 * Lists the projects that an actor may see, oldest first, at most 1,000. `isArchived` selects archived projects, those in use, or with
 * `null` both.
 */
export const listProjects = operation({
  action: 'listProjects',
  summary: 'List the active or archived projects that the caller may see, oldest first',
  route: 'GET /projects',
  command: 'project list',
  does: 'list projects',
  input: Type.Object({ archived: flag('list archived projects instead') }),
  output: listOf(listed),
  read: ({ archived = false }): { isArchived: boolean | null } => ({ isArchived: archived }),
  run: async ({ db }: { db: Sql }, actor, { isArchived }) => {
    const projects = await rowsOf(db, actor.projects, isArchived);
    const ids = projects.map((project) => project.id);
    const counts = await countAddressesByProject(db, ids);
    const none = { tail: 0, 'tail-4': 0, 'tail-3': 0, exact: 0 };
    const activeOf = (project: Project) => counts.get(project.id)?.active ?? none;
    return {
      data: projects.map((project) => show(listed, { ...project, activeAddresses: activeOf(project) })),
      isArchived,
    };
  },
  view: ({ data }) => ({ data }),
  print: ({ data, isArchived }) => ({
    text: columnsText(data, [
      ['PROJECT', 'projectId'],
      ['NETWORK', 'network'],
      ['POLICY', 'policy'],
      ['ADDRESSES', ({ activeAddresses, policy }) => String(activeAddresses[policy])],
      ['CREATED', 'createdAt'],
      ['NAME', 'name'],
    ]),
    next:
      data.length === 0 &&
      (isArchived === true
        ? 'no archived projects'
        : say`no active projects: create a project with "${{ command: 'project create' }}"`),
  }),
});

/** `autoDerived` of at most `autoDeriveLimit` addresses were derived automatically. */
const detailed = {
  ...{ ...listed, retiredAddresses: whole, autoDerived: whole, autoDeriveLimit: whole },
  ...{ activeKeys: whole, webhookEndpoints: whole },
};

/** `hasAccountKeys` is whether the project can derive addresses at all. */
export const showProject = operation({
  action: 'showProject',
  summary: "Show a project's settings and how many addresses, keys and endpoints it has",
  route: 'GET /projects/:projectId',
  command: 'project show',
  input: Type.Object({ projectId: projectArgument() }),
  output: schemaOf(detailed),
  run: async ({ db, now }: { db: Sql; now(): UnixMs }, actor, { projectId }) => {
    const project = await selectProject(db, actor, projectId);
    const [addresses, accountKeys, keys, endpoints] = await Promise.all([
      countAddresses(db, project.id),
      listAccountKeys(db, project.id),
      listApiKeys(db, project.id),
      listWebhookEndpoints(db, project.id),
    ]);
    const view = show(detailed, {
      ...{ ...project, activeAddresses: addresses.active, retiredAddresses: addresses.retired },
      autoDerived: accountKeys.reduce((sum, key) => sum + key.autoDerived, 0),
      autoDeriveLimit: accountKeys.reduce((sum, key) => sum + key.autoDeriveLimit, 0),
      activeKeys: keys.filter((key) => keyStatusOf(key, now()) === 'active').length,
      webhookEndpoints: endpoints.filter(({ disabledAt }) => disabledAt === null).length,
    });
    return { view, hasAccountKeys: accountKeys.length > 0 };
  },
  print: ({ view, hasAccountKeys }) => ({
    text: fieldsText(view, [
      ...FIELDS,
      ['active addresses', describeActive],
      ['retired addresses', 'retiredAddresses'],
      [
        'derived automatically',
        ({ autoDerived, autoDeriveLimit }) => (hasAccountKeys ? `${autoDerived} of at most ${autoDeriveLimit}` : null),
      ],
      ['active keys', 'activeKeys'],
      ['webhook endpoints', 'webhookEndpoints'],
    ]),
  }),
});

/** Shows the project's policy, and other policies that have addresses. */
function describeActive({ policy, activeAddresses: active }: ListedProjectView): string {
  const known = POLICIES.filter((each) => each === policy || active[each] > 0);
  return known.map((each) => `${active[each]} ${each}`).join(', ');
}

/** Counting this many invoices takes a few milliseconds, whatever the size of the table. */
const MAX_LOOKED = 10_000;

const countOpen = answerOf(
  'settings-open-invoices',
  { count, looked: count },
  `select count(*) filter (where status in ('PENDING', 'CONFIRMING')) as count, count(*) as looked
   from (select status from invoices where project_id = $1 order by id desc limit ${MAX_LOOKED}) newest`,
  (projectId: string) => [projectId],
  ([row]) => ({ count: row?.count ?? 0, isAll: (row?.looked ?? 0) < MAX_LOOKED }),
);

/**
 * Shows a project's settings with its logo, and how many invoices a change won't affect. `open` counts waiting and confirming invoices,
 * among the newest 10,000. Throws `NOT_FOUND`.
 */
export const showSettings = localOperation({
  action: 'showSettings',
  input: Type.Object({ projectId: Type.String() }),
  run: async (deps: { db: Sql; now(): UnixMs }, actor, { projectId }) => {
    const { id, logoId } = await selectProject(deps.db, actor, projectId);
    const { view } = await showProject.run(deps, actor, { projectId });
    const [logo, open] = [logoId === null ? null : await findLogo(deps.db, logoId), await countOpen(deps.db, id)];
    return { view, logo, open };
  },
});

export type Settings = Awaited<ReturnType<typeof showSettings.run>>;

/** The addresses that the expected orders need, if any were given. `warning` says that no watcher follows the network now. */
const made = {
  warning: Type.Optional(Said),
  addressNeed: Type.Optional(
    Type.Object({
      ...{ ordersPerDay: Type.Integer(), prices: Type.Integer(), daysOfOne: Type.Number() },
      ...{ for90Days: Type.Integer(), for365Days: Type.Integer() },
    }),
  ),
};
type NewProjectView = ProjectView & Static<ReturnType<typeof Type.Object<typeof made>>>;

export const createProject = operation({
  action: 'createProject',
  summary: 'Create a project, permanently tied to one network',
  route: 'POST /projects',
  command: 'project create',
  does: 'create a project and print its id',
  mayCreate: true,
  asks: [
    {
      member: 'support',
      question: 'How can payers get help? An e-mail address, an https:// link, or a short text (Enter: none) ',
    },
    { member: 'ordersPerDay', question: 'How many orders per day do you expect, paid or not? (Enter: unknown) ' },
    {
      ...{ member: 'prices', after: 'ordersPerDay' },
      question: 'How many different amounts do these orders have? (Enter: one) ',
    },
  ],
  output: schemaOf(shown, made),
  input: Type.Object(newProject),
  read: ({ network, ordersPerDay, prices, ...input }) => {
    const problems: FieldProblem[] = [];
    const settings = readSettings(input, problems);
    const expected = readExpected({ ordersPerDay, prices }, problems);
    if (isNetwork(network)) problems.push(...linkProblems(settings, network));
    else problems.push(fieldProblem('network', `is ${clip(network)}: choose ${NETWORKS.join(', ')}`));
    if (problems.length === 0 && isNetwork(network)) return { ...settings, network, expected };
    throw new AppError('INVALID_ARGUMENT', 'the project was not created', { problems });
  },
  // `networks` are the networks with nodes configured here.
  run: async (
    { db, networks, now, random }: Deps & Pick<OperationDeps, 'networks' | 'random'>,
    actor,
    { network, expected, ...settings },
  ): Promise<NewProjectView> => {
    const id = uuidV7(now(), random(10));
    const stored = await storeLogo(db, settings);
    const project = await db.transaction(async (tx) => {
      await insertProject(tx, { id, network, ...stored });
      const inserted = await findProject(tx, id);
      if (inserted === null) throw new Error(`project ${id} was inserted but cannot be found`);
      const about = { projectId: id, subject: encodeId('prj', id), detail: { name: inserted.name, network } };
      await recordAction(tx, actor, now(), 'project.created', about);
      return inserted;
    });
    const warning = await warnUnwatched(db, network, networks);
    const view = { ...show(shown, project), ...(warning !== null && { warning }) };
    if (expected === null) return view;
    const { perDay: ordersPerDay, prices } = expected;
    return { ...view, addressNeed: { ordersPerDay, prices, ...addressNeed(expected, project) } };
  },
  print: (project) => ({
    text: fieldsText(project, [...FIELDS, ['addresses needed', needOf]]),
    next: [
      project.warning !== undefined && say`warning: ${project.warning}`,
      project.supportContact === null && noContact(project),
      say`next: ${addAddresses(project)}, then ${{ command: 'key create', input: { projectId: project.projectId } }}`,
    ],
  }),
});

function noContact({ projectId }: ProjectView): Text {
  return say`warning: there is no support contact, so payers who need help see only the shop's name. To add one: ${{ command: 'project update', args: [projectId], input: { support: 'help@…' } }}`;
}

function needOf({ addressNeed: need }: NewProjectView): string | null {
  if (need === undefined) return null;
  const days = Math.floor(need.daysOfOne);
  const each = days < 1 ? 'less than a day' : `${days} ${days === 1 ? 'day' : 'days'}`;
  return `${need.for90Days} for 90 days, ${need.for365Days} for a year; one address is enough for ${each}`;
}

function addAddresses({ projectId, addressNeed: need }: NewProjectView): Text {
  const add = say`${{ command: 'address add', input: { projectId } }} T…`;
  if (need === undefined) return add;
  const derive = { command: 'address derive', input: { projectId, xpub: 'xpub6…', count: '3' } };
  return say`add ${need.for90Days} addresses with ${add}, or a few with ${derive}; Quittance then derives up to 100 more automatically`;
}

type Value = string | number | null;
type Changed = Record<string, { from: Value; to: Value }>;
const value = maybe({ schema: Type.Union([Type.String(), Type.Integer()]), show: (given: Value) => given }).schema;
/** The changed settings, named like the members above. */
const changed: Field<Changed, Changed> = {
  schema: Type.Record(Type.String(), Type.Object({ from: value, to: value })),
  show: (of) => of,
};
const updated = { ...listed, changed };
export type UpdatedProjectView = Shown<typeof updated>;

function refuse(problems: readonly FieldProblem[]): void {
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'the project was not changed', { problems });
}

/**
 * Changes a project's settings. Settings that are omitted, or already have the given value, stay unchanged. Existing invoices keep their
 * terms, but their pages show the new brand. Throws `NOT_FOUND`, `INVALID_ARGUMENT` or `CONFLICT`.
 */
export const updateProject = operation({
  action: 'updateProject',
  summary: "Change a project's settings; omitted settings stay unchanged",
  route: 'PATCH /projects/:projectId',
  command: 'project update',
  does: "change a project's settings",
  by: { ...BY, before: 'support' },
  nothing: say`no change was given: use ${{ field: 'policy' }}, ${{ field: 'maxSurcharge' }}, ${{ field: 'lifetime' }}, ${{ field: 'maxUnpaid' }}, ${{ field: 'maxUnpaidPerMinute' }}, ${{ field: 'name' }}, ${{ field: 'support' }}, ${{ field: 'returnUrl' }}, ${{ field: 'embedOrigins' }}, ${{ field: 'accent' }} or ${{ field: 'logo' }}`,
  output: schemaOf(updated),
  input: Type.Object({ projectId: projectArgument(), ...settings }),
  read: ({ projectId, ...given }): WantedSettings & { projectId: string | undefined } => {
    const problems: FieldProblem[] = [];
    const wanted = readSettings(given, problems);
    refuse(problems);
    return { projectId, ...wanted };
  },
  run: async ({ db, now }: Deps, actor, { projectId, ...wanted }) => {
    const { id, network } = await selectProject(db, actor, projectId);
    refuse(linkProblems(wanted, network));
    const given = await storeLogo(db, wanted);
    return db.transaction(async (tx) => {
      const before = await lockProject(tx, id);
      const after = { ...before, ...given, maxSurchargeMicro: surchargeAfter(before, given) };
      const changed = compare(before, after);
      const { active } = await countAddresses(tx, id);
      const refusal = 'policy' in changed || 'maxSurcharge' in changed ? db.refuseRule(ruleOf(before, after)) : null;
      if (refusal !== null) throw conflict`${refusal}. Nothing was changed`;
      if (Object.keys(changed).length > 0) {
        await update(tx, before, after);
        const subject = encodeId('prj', id);
        await recordAction(tx, actor, now(), 'project.changed', { projectId: id, subject, detail: changed });
      }
      return show(updated, { ...after, activeAddresses: active, changed });
    });
  },
  print: (project) => ({ text: fieldsText(project, FIELDS), next: notesOn(project) }),
});

/**
 * When the policy changes, the surcharge limit becomes the new policy's default if it was the old policy's default, or if the new policy
 * has no amounts within the old limit. Throws `INVALID_ARGUMENT` if the policy doesn't allow the given limit.
 */
function surchargeAfter(before: ProjectSettings, { policy = before.policy, maxSurchargeMicro }: WantedSettings) {
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

/**
 * Changes to these settings appear on every payment page that is opened after the change. Changes to other settings apply to new invoices.
 */
const BRAND_CHANGES: readonly string[] = ['name', 'supportContact', 'returnUrl', 'embedOrigins', 'accent', 'logoId'];
const CHANGEABLE = [
  ...(['name', 'policy', 'supportContact', 'returnUrl', 'embedOrigins', 'accent', 'logoId'] as const),
  ...(['maxUnpaid', 'maxUnpaidPerMinute', 'maxSurcharge', 'lifetimeMs'] as const),
];

function compare(before: Project, after: Project): Changed {
  const [then, now] = [show(shown, before), show(shown, after)];
  const changed = CHANGEABLE.filter((name) => then[name] !== now[name]);
  return Object.fromEntries(changed.map((name) => [name, { from: then[name], to: now[name] }]));
}

function notesOn({ projectId, policy, changed, activeAddresses }: UpdatedProjectView) {
  const names = Object.keys(changed);
  if (names.length === 0) return ['nothing to change: the project already has this setting'];
  const active = activeAddresses[policy];
  return [
    names.some((name) => BRAND_CHANGES.includes(name)) &&
      'payers see this on every page they open from now on, including pages for existing invoices',
    names.some((name) => !BRAND_CHANGES.includes(name)) &&
      'new invoices use this within 10 seconds; existing invoices are unchanged',
    changed['policy'] !== undefined &&
      (active === 0
        ? say`warning: the project has no active address with the policy ${policy}, and an address can never change its policy. Every new invoice is refused (AMOUNT_UNAVAILABLE) until you add addresses: ${{ command: 'address add', input: { projectId, policy } }} T…`
        : `active addresses with the policy ${policy}: ${active}`),
    changed['maxSurcharge'] !== undefined &&
      policy === 'exact' &&
      'the max surcharge has no effect with the policy exact: payers pay exactly the requested amount',
  ];
}

/** `isChanged` is `false` if the project was already in that state. */
const archived = { ...shown, isChanged: yes };
export type ArchivedProjectView = Shown<typeof archived>;

const archiving = {
  by: BY,
  input: Type.Object({ projectId: argument('<projectId>', 'prj_…', 'prj_…') }),
  output: schemaOf(archived),
} as const;

/**
 * Archives a project. Its keys can read, but can't create invoices. Open invoices continue, and lists omit the project. A request that is
 * already in progress may still create its invoice. Throws `NOT_FOUND`.
 */
export const archiveProject = operation({
  ...archiving,
  action: 'archiveProject',
  summary: 'Archive a project: it accepts no new invoices, and existing invoices continue',
  route: 'POST /projects/:projectId/archive',
  command: 'project archive',
  does: 'stop accepting new invoices for a project and hide it from lists; existing invoices continue',
  run: (deps: Deps, actor, { projectId }) => putInOrder(deps, actor, projectId, 'project.archived'),
  print: (project) =>
    printArchived(
      project,
      say`new orders are refused (PROJECT_ARCHIVED); existing invoices can still be read and paid. To restore the project: ${{ command: 'project unarchive', args: [project.projectId] }}`,
    ),
});

export const unarchiveProject = operation({
  ...archiving,
  action: 'unarchiveProject',
  summary: 'Restore an archived project',
  route: 'POST /projects/:projectId/unarchive',
  command: 'project unarchive',
  run: (deps: Deps, actor, { projectId }) => putInOrder(deps, actor, projectId, 'project.unarchived'),
  print: (project) => printArchived(project, "the project's keys can create invoices again"),
});

const printArchived = (project: ArchivedProjectView, next: Text) => ({
  text: fieldsText(project, FIELDS),
  next: project.isChanged ? next : 'nothing to change: the project already has this setting',
});

async function putInOrder(
  { db, now }: Deps,
  actor: Actor,
  projectId: string,
  action: 'project.archived' | 'project.unarchived',
): Promise<ArchivedProjectView> {
  const { id } = await selectProject(db, actor, projectId);
  return db.transaction(async (tx) => {
    const before = await lockProject(tx, id);
    const isArchived = action === 'project.archived';
    if (isArchived === (before.archivedAt !== null)) return show(archived, { ...before, isChanged: false });
    const archivedAt = isArchived ? now() : null;
    await putAway(tx, before, archivedAt);
    const subject = encodeId('prj', id);
    // The capacity of archived projects isn't measured, so nothing else would end this alarm.
    if (isArchived) await resolveAlarms(tx, before.network, 'capacity-low', subject);
    await recordAction(tx, actor, now(), action, { projectId: id, subject, detail: { name: before.name } });
    return show(archived, { ...before, archivedAt, isChanged: true });
  });
}

export const operations = [createProject, updateProject, listProjects, showProject, archiveProject, unarchiveProject];
