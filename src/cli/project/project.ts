import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { isNetwork, NETWORKS } from '../../domain/network.ts';
import type { Policy } from '../../domain/policy.ts';
import { systemClock } from '../../runtime/clock.ts';
import { listAccountKeys } from '../../store/account-keys.ts';
import { countAddresses, countAddressesByProject } from '../../store/addresses.ts';
import { listApiKeys } from '../../store/api-keys.ts';
import { insertLogo } from '../../store/logos.ts';
import { findProject, insertProject, listProjects } from '../../store/projects.ts';
import { listWebhookEndpoints } from '../../store/webhook-endpoints.ts';
import { CliError, type Problem } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { selectProject } from '../select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { type BrandOptions, readBrandOptions, returnUrlProblem } from './brand-options.ts';
import { describeProject, fieldsOfProject } from './describe-project.ts';
import { readLifetimeOption, readNameOption, readSurchargeOption, readUnpaidOption } from './options.ts';

export type CreateProjectOptions = BrandOptions & {
  name: string;
  network: string;
  policy: Policy;
  maxSurcharge: string;
  lifetime: string;
  maxUnpaid: string;
  maxUnpaidPerMinute: string;
};

export async function createProject(terminal: Terminal, options: CreateProjectOptions): Promise<Result> {
  const { logo, ...settings } = await readCreateOptions(options);
  const id = uuidV7(systemClock.now(), randomBytes(10));
  const project = await withDatabase(
    terminal,
    async ({ db }) => {
      await insertProject(db, { id, ...settings, logoId: logo ? await insertLogo(db, logo) : null });
      return findProject(db, id);
    },
    { mayCreate: true, mayMigrate: false },
  );
  if (project === null) throw new Error(`project ${id} was inserted and is not there`);
  const projectId = encodeId('prj', id);
  return {
    data: describeProject(project),
    text: formatFields(fieldsOfProject(project)),
    next: `next: quittance address add --project ${projectId} T…, then quittance key create --project ${projectId}`,
  };
}

export async function listAllProjects(terminal: Terminal): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const projects = await listProjects(db);
    const counts = await countAddressesByProject(
      db,
      projects.map(({ id }) => id),
    );
    const described = projects.map((project) => {
      return { ...describeProject(project), activeAddresses: counts.get(project.id)?.active ?? { tail: 0, exact: 0 } };
    });
    const rows = described.map(({ projectId, network, policy, activeAddresses, createdAt, name }) => [
      ...[projectId, network, policy, String(activeAddresses[policy])],
      ...[createdAt, name],
    ]);
    return {
      data: { data: described },
      text: formatTable(['PROJECT', 'NETWORK', 'POLICY', 'ADDRESSES', 'CREATED', 'NAME'], rows),
      ...(projects.length === 0 ? { next: 'no project yet: make one with "quittance project create"' } : {}),
    };
  });
}

export async function showProject(terminal: Terminal, projectId: string | undefined): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, projectId);
    const [addresses, accountKeys, keys, endpoints] = await Promise.all([
      countAddresses(db, project.id),
      listAccountKeys(db, project.id),
      listApiKeys(db, project.id),
      listWebhookEndpoints(db, project.id),
    ]);
    const now = systemClock.now();
    const autoDerived = accountKeys.reduce((sum, key) => sum + key.auto_derived, 0);
    const autoDeriveLimit = accountKeys.reduce((sum, key) => sum + key.auto_derive_limit, 0);
    const counts = {
      activeAddresses: addresses.active,
      retiredAddresses: addresses.retired,
      autoDerived,
      autoDeriveLimit,
      activeKeys: keys.filter((key) => key.revoked_at === null && (key.expires_at ?? Infinity) > now).length,
      webhookEndpoints: endpoints.filter(({ disabled_at }) => disabled_at === null).length,
    };
    const countFields = [
      ['active addresses', `${counts.activeAddresses.tail} tail, ${counts.activeAddresses.exact} exact`],
      ['retired addresses', String(counts.retiredAddresses)],
      ['derived by itself', accountKeys.length === 0 ? null : `${autoDerived} of at most ${autoDeriveLimit}`],
      ['active keys', String(counts.activeKeys)],
      ['webhook endpoints', String(counts.webhookEndpoints)],
    ] as const;
    return {
      data: { ...describeProject(project), ...counts },
      text: formatFields([...fieldsOfProject(project), ...countFields]),
    };
  });
}

/** All problems at once. */
async function readCreateOptions(options: CreateProjectOptions) {
  const { name, network, policy, maxSurcharge, lifetime } = options;
  const problems: Problem[] = [];
  const settings = {
    name: readNameOption(name, problems),
    maxSurchargeMicro: readSurchargeOption(maxSurcharge, problems),
    invoiceLifetimeMs: readLifetimeOption(lifetime, problems),
    maxUnpaid: readUnpaidOption('--max-unpaid', options.maxUnpaid, problems),
    maxUnpaidPerMinute: readUnpaidOption('--max-unpaid-per-minute', options.maxUnpaidPerMinute, problems),
    ...(await readBrandOptions(options, problems)),
  };
  if (!isNetwork(network)) {
    problems.push({ subject: '--network', message: `--network is ${clip(network)}: choose ${NETWORKS.join(', ')}` });
  }
  const problem = isNetwork(network) ? returnUrlProblem(settings, network) : null;
  if (problem !== null) problems.push(problem);
  if (problems.length > 0 || !isNetwork(network)) {
    throw new CliError('INVALID_ARGUMENT', 'the project was not made', { problems });
  }
  return { ...settings, network, policy };
}
