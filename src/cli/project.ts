import { randomBytes } from 'node:crypto';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { formatAmount, microUsdt, parseAmount } from '../domain/money.ts';
import { isNetwork, NETWORKS } from '../domain/network.ts';
import { toIso } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { listAddresses } from '../store/addresses.ts';
import { listApiKeys } from '../store/api-keys.ts';
import { findProject, insertProject, listProjects, type Project } from '../store/projects.ts';
import { listWebhookEndpoints } from '../store/webhook-endpoints.ts';
import { CliError, type Problem } from './cli-error.ts';
import { clip } from './clip.ts';
import { formatDuration, parseDuration } from './duration.ts';
import { nameProblem } from './name-problem.ts';
import { selectProject } from './select-project.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

export type CreateProjectOptions = { name: string; network: string; maxSurcharge: string; lifetime: string };

export async function createProject(terminal: Terminal, options: CreateProjectOptions): Promise<Result> {
  const settings = readOptions(options);
  const id = uuidV7(systemClock.now(), randomBytes(10));
  const project = await withDatabase(
    terminal,
    async ({ db }) => {
      await insertProject(db, { id, ...settings });
      return findProject(db, id);
    },
    { mayCreate: true, mayMigrate: false },
  );
  if (project === null) throw new Error(`project ${id} was inserted and is not there`);
  const projectId = encodeId('prj', id);
  return {
    data: describe(project),
    text: formatFields(fieldsOf(project)),
    next: `next: quittance address add --project ${projectId} T…, then quittance key create --project ${projectId}`,
  };
}

export async function listAllProjects(terminal: Terminal): Promise<Result> {
  const projects = await withDatabase(terminal, ({ db }) => listProjects(db));
  const rows = projects.map((project) => [
    encodeId('prj', project.id),
    project.network,
    toIso(project.created_at),
    project.name,
  ]);
  return {
    data: { data: projects.map(describe) },
    text: formatTable(['PROJECT', 'NETWORK', 'CREATED', 'NAME'], rows),
    ...(projects.length === 0 ? { next: 'no project yet: make one with "quittance project create"' } : {}),
  };
}

export async function showProject(terminal: Terminal, projectId: string | undefined): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, projectId);
    const [addresses, keys, endpoints] = await Promise.all([
      listAddresses(db, project.id),
      listApiKeys(db, project.id),
      listWebhookEndpoints(db, project.id),
    ]);
    const now = systemClock.now();
    const counts = {
      addresses: addresses.filter(({ retired_at }) => retired_at === null).length,
      activeKeys: keys.filter((key) => key.revoked_at === null && (key.expires_at ?? Infinity) > now).length,
      webhookEndpoints: endpoints.filter(({ disabled_at }) => disabled_at === null).length,
    };
    const countFields = [
      ['addresses', String(counts.addresses)],
      ['active keys', String(counts.activeKeys)],
      ['webhook endpoints', String(counts.webhookEndpoints)],
    ] as const;
    return {
      data: { ...describe(project), ...counts },
      text: formatFields([...fieldsOf(project), ...countFields]),
    };
  });
}

function describe(project: Project) {
  return {
    projectId: encodeId('prj', project.id),
    name: project.name,
    network: project.network,
    maxSurcharge: formatAmount(microUsdt(project.max_surcharge_micro)),
    lifetimeMs: Number(project.invoice_lifetime_ms),
    createdAt: toIso(project.created_at),
  };
}

function fieldsOf(project: Project): (readonly [string, string])[] {
  const { projectId, name, network, maxSurcharge, lifetimeMs, createdAt } = describe(project);
  return [
    ['project', projectId],
    ['name', name],
    ['network', network],
    ['max surcharge', `${maxSurcharge} USDT`],
    ['invoice lifetime', formatDuration(lifetimeMs)],
    ['created', createdAt],
  ];
}

/** The bounds of the schema: 100 to 1,000,000 micro-USDT. */
const SURCHARGE_MICRO = { least: 100n, most: 1_000_000n };
const DAY_MS = 86_400_000;
const LIFETIME_MS = { least: 300_000, most: 30 * DAY_MS };

/** All problems at once. */
function readOptions(options: CreateProjectOptions) {
  const problems: Problem[] = [];
  const add = (subject: string, message: string) => problems.push({ subject, message: `${subject} ${message}` });
  const name = options.name.trim();
  const nameIsWrong = nameProblem(name);
  if (nameIsWrong !== null) add('--name', nameIsWrong);
  const { network } = options;
  if (!isNetwork(network)) add('--network', `is ${clip(network)}: choose ${NETWORKS.join(', ')}`);
  const surcharge = parseAmount(options.maxSurcharge);
  const surchargeMicro = surcharge.kind === 'ok' ? surcharge.amountMicro : 0n;
  if (surchargeMicro < SURCHARGE_MICRO.least || surchargeMicro > SURCHARGE_MICRO.most) {
    add('--max-surcharge', `is ${clip(options.maxSurcharge)}: it takes 0.0001 to 1 USDT, for example 0.01`);
  }
  const lifetimeMs = parseDuration(options.lifetime) ?? 0;
  if (lifetimeMs < LIFETIME_MS.least || lifetimeMs > LIFETIME_MS.most) {
    add('--lifetime', `is ${clip(options.lifetime)}: it takes 5m to 30d, for example 30m, 12h or 2d`);
  }
  if (problems.length > 0 || !isNetwork(network)) {
    throw new CliError('INVALID_ARGUMENT', 'the project was not made', { problems });
  }
  return { name, network, maxSurchargeMicro: surchargeMicro, invoiceLifetimeMs: lifetimeMs };
}
