import { type AccountXpub, deriveAddresses } from '@quittance/tron/account-xpub';
import { AppError, conflict, type FieldProblem, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { encodeId } from '../../../core/domain/ids.ts';
import { describeChanges } from '../../../core/domain/manifest/describe-changes.ts';
import {
  formatManifest,
  type Manifest,
  type ProjectEntry,
  type XpubRange,
} from '../../../core/domain/manifest/manifest.ts';
import { lackOfSignatures } from '../../../core/domain/manifest/manifest-signature.ts';
import { formatAmount, microUsdt } from '../../../core/domain/money.ts';
import { keyMode, NETWORKS, type Network } from '../../../core/domain/network.ts';
import { DAY_MS, toIso, type UnixMs, unixMs } from '../../../core/domain/time.ts';
import {
  checkMark,
  type InstalledManifest,
  idsOf,
  lackOfLedger,
  lackOfNetworks,
  lackOfTime,
  type ManifestSettings,
  readMark,
  rulesOf,
} from '../../../core/payments/manifest/read-installed.ts';
import { writePrivateFile } from '../../../core/runtime/private-file.ts';
import type { Database } from '../../../core/store/db/database.ts';
import { findLedgerIdentity } from '../../../core/store/db/ledger-identity.ts';
import { listAccountKeys } from '../../../core/store/ledger/account-keys.ts';
import { listAddresses, MAX_LISTED } from '../../../core/store/ledger/addresses.ts';
import { findProjects, listRules, type Project } from '../../../core/store/ledger/projects.ts';
import { clip } from '../input/problems.ts';
import { readCandidates } from '../input/read-candidates.ts';
import { readSettings, type SettingsInput } from '../subjects/project-settings.ts';
import { checkExpansion, type ManifestFile, readManifestFile, writeManifestFile } from './sign-manifest.ts';

/**
 * `previous` is the manifest in force. `reserve` is the number of addresses from each account key that are included before they are
 * derived. `added` contains addresses for the project `projectId` that aren't in the database yet. `left` contains addresses in the
 * database that the draft leaves out. `settings` are the project's settings when this manifest is in force.
 */
type DraftInput = {
  path: string;
  previous: ManifestFile | null;
  networks: readonly Network[];
  reserve: number;
  validDays: number;
  projectId: string | null;
  added: readonly string[];
  settings: Partial<Pick<ProjectEntry, 'policy' | 'maxSurcharge'>>;
  left: readonly string[];
};

/** Writes a draft from the database's current state, for a person to review and sign. Throws `CONFLICT` or `INVALID_ARGUMENT`. */
export async function draftManifest({ db, now }: { db: Database; now(): UnixMs }, input: DraftInput) {
  const identity = await findLedgerIdentity(db);
  if (identity === null) throw conflict`this ledger has no identity yet: start the service once, then create the draft`;
  const { path, previous, validDays } = input;
  const warnings: string[] = [];
  const networks: Record<string, Record<string, ProjectEntry>> = {};
  const projects = await findProjects(db, null, null);
  requireDrafted(projects, input);
  for (const project of projects) {
    if (!isDrafted(project.network, input)) continue;
    const entry = await draftProject(db, project, input, warnings);
    if (entry.addresses.length + entry.xpubs.length === 0) continue;
    networks[project.network] = { ...networks[project.network], [encodeId('prj', project.id)]: entry };
  }
  if (Object.keys(networks).length === 0 && previous === null)
    throw conflict`no project on ${namesOf(input)} has addresses, so there is nothing to sign: add addresses first, or name another network with ${{ field: 'network' }}`;
  const manifest: Manifest = {
    ...{ v: 1, ledgerId: identity.id, serial: (previous?.manifest.serial ?? 0) + 1 },
    ...{ previous: previous?.head.digest ?? null, notAfter: toIso(unixMs(now() + validDays * DAY_MS)), networks },
  };
  await writeManifestFile(path, { manifest, signatures: [] });
  const entries = Object.values(networks).flatMap((projects) => Object.values(projects));
  return {
    ...{ file: path, serial: manifest.serial, notAfter: manifest.notAfter, warnings },
    addresses: entries.reduce(
      (sum, { addresses, xpubs }) => sum + addresses.length + xpubs.reduce((all, { count }) => all + count, 0),
      0,
    ),
    changes: describeChanges(previous?.manifest ?? null, manifest),
  };
}

/** Unless networks are named, a draft also covers those of the manifest in force, because it would otherwise remove their addresses. */
function networksOf({ networks, previous }: DraftInput): readonly Network[] {
  if (networks.length > 0) return networks;
  const signed = previous?.manifest.networks ?? {};
  return NETWORKS.filter((network) => keyMode(network) === 'live' || Object.hasOwn(signed, network));
}

function isDrafted(network: Network, input: DraftInput): boolean {
  return networksOf(input).includes(network);
}

function namesOf(input: DraftInput): string {
  return networksOf(input).join(' or ');
}

/** Without this check, the draft would ignore `added` and `settings`, and remove the project from the manifest. */
function requireDrafted(projects: readonly Project[], input: DraftInput): void {
  const { projectId } = input;
  if (projectId === null) return;
  const project = projects.find(({ id }) => encodeId('prj', id) === projectId);
  if (project === undefined)
    throw notFound`nothing was drafted, because there is no project ${clip(projectId)}: list the projects with "${{ command: 'project list' }}"`;
  if (isDrafted(project.network, input)) return;
  throw invalidArgument`nothing was drafted, because ${projectId} is on ${project.network}, but the draft is for ${namesOf(input)}: add ${{ field: 'network' }} ${project.network}`;
}

async function draftProject(db: Database, project: Project, input: DraftInput, warnings: string[]) {
  const id = encodeId('prj', project.id);
  const left = new Set(input.left);
  const stored = (await listAll(db, project.id)).filter(({ address }) => !left.has(address));
  const plain = new Set<string>(stored.map(({ address }) => address));
  for (const address of input.projectId === id ? input.added : []) plain.add(address);
  const xpubs: XpubRange[] = [];
  for (const key of await listAccountKeys(db, project.id)) {
    const ofKey = stored.filter(({ accountKeyId }) => accountKeyId === key.id);
    const known = new Map(ofKey.map(({ derivationIndex, address }) => [derivationIndex ?? -1, address]));
    const reserve = key.isInUse ? input.reserve : 0;
    const wanted = [...known.keys(), ...Array.from({ length: reserve }, (_, index) => key.nextIndex + index)];
    const ranges = rangesOf(
      key.xpub,
      [...new Set(wanted)].sort((left, right) => left - right),
    );
    const isRight = ({ from, addresses }: XpubRange) =>
      addresses.every((address, place) => (known.get(from + place) ?? address) === address);
    if (!ranges.every(isRight)) {
      const shown = `${key.xpub.slice(0, 12)}…${key.xpub.slice(-6)}`;
      warnings.push(
        `${id}: some addresses recorded for the account key ${shown} do not belong to that key: someone changed the key or the addresses in the database. The draft lists each address; check who owns them`,
      );
      continue;
    }
    for (const address of ranges.flatMap(({ addresses }) => addresses)) plain.delete(address);
    xpubs.push(...ranges);
  }
  const { policy, maxSurchargeMicro } = project;
  const wanted = input.projectId === id ? input.settings : {};
  const maxSurcharge = formatAmount(microUsdt(maxSurchargeMicro));
  return { addresses: [...plain].sort(), maxSurcharge, policy, ...wanted, xpubs };
}

/** Groups indexes into ranges without gaps. */
function rangesOf(xpub: AccountXpub, indexes: readonly number[]): XpubRange[] {
  const runs: { from: number; count: number }[] = [];
  for (const index of indexes) {
    const last = runs.at(-1);
    if (last !== undefined && last.from + last.count === index) last.count += 1;
    else runs.push({ from: index, count: 1 });
  }
  return runs.map(({ from, count }) => {
    return { xpub, from, count, addresses: deriveAddresses(xpub, from, count).map(({ address }) => address) };
  });
}

async function listAll(db: Database, projectId: string) {
  const all: Awaited<ReturnType<typeof listAddresses>> = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page: Awaited<ReturnType<typeof listAddresses>> = await listAddresses(db, projectId, after);
    all.push(...page);
    after = page.length === MAX_LISTED ? page.at(-1)?.position : undefined;
  }
  return all;
}

/** Reads a policy and a surcharge from the options. Throws `INVALID_ARGUMENT`. */
export function readGivenSettings(input: Pick<SettingsInput, 'policy' | 'maxSurcharge'>): DraftInput['settings'] {
  const problems: FieldProblem[] = [];
  const { policy, maxSurchargeMicro: micro } = readSettings(input, problems);
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'nothing was drafted', { problems });
  return {
    ...(policy === undefined ? {} : { policy }),
    ...(micro === undefined ? {} : { maxSurcharge: formatAmount(microUsdt(micro)) }),
  };
}

/** Reads addresses from the options, all of which must be valid. Throws `INVALID_ARGUMENT`. */
export function readGiven(field: string, texts: readonly string[]): string[] {
  const { good, problems } = readCandidates(
    texts.map((text) => ({ text: text.trim(), place: field })),
    [],
  );
  if (problems.length > 0) throw new AppError('INVALID_ARGUMENT', 'nothing was drafted', { problems });
  return good.map(({ address }) => address);
}

/** The id of the database's ledger, and the requested projects (UUIDs) that exist. */
type LedgerFacts = { ledgerId: string | null; projects: readonly { id: string; network: string }[] };

export async function readLedgerFacts(db: Database, projectIds: readonly string[]): Promise<LedgerFacts> {
  const identity = await findLedgerIdentity(db);
  return { ledgerId: identity?.id ?? null, projects: await listRules(db, projectIds) };
}

/** `askLedger` returns `null` if the database doesn't answer. The manifest is then compared only with the previous one in force. */
type InstallDeps = { now: UnixMs; askLedger(projectIds: readonly string[]): Promise<LedgerFacts | null> };

/** Replaces the manifest in force with a signed one. Running services load it within seconds. Throws `MANIFEST_REFUSED`. */
export async function installManifest(settings: ManifestSettings, path: string, deps: InstallDeps) {
  const next = await readManifestFile(path);
  // A damaged manifest is simply replaced. Its serial is still known, because it's also stored separately.
  const now = await readInForce(settings).catch(() => null);
  const refused =
    lackOfSignatures(next.head.text, next.signatures, settings.pinned) ??
    (await lackOfOrder(settings, now, next)) ??
    lackOfTime(next.manifest, deps.now) ??
    (await lackOfPlace(settings, now, next, deps));
  if (refused !== null) throw new AppError('MANIFEST_REFUSED', `nothing was installed: ${refused}`);
  checkExpansion(next.manifest);
  await writePrivateFile(settings.path, formatManifest(next)).catch((error: NodeJS.ErrnoException) => {
    throw new AppError(
      'INVALID_ARGUMENT',
      `nothing was installed, because ${clip(settings.path)} cannot be written (${error.code}): set QUITTANCE_ADDRESS_MANIFEST to a file in a directory that belongs to the service's user`,
      { cause: error },
    );
  });
  return {
    file: settings.path,
    serial: next.manifest.serial,
    changes: describeChanges(now?.manifest ?? null, next.manifest),
  };
}

/** Reads the manifest in force; `null` if there is none yet. */
export async function readInForce({ path }: Pick<ManifestSettings, 'path'>): Promise<ManifestFile | null> {
  try {
    return await readManifestFile(path);
  } catch (error) {
    if (error instanceof AppError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

async function lackOfOrder({ dataDir }: ManifestSettings, now: ManifestFile | null, { manifest, head }: ManifestFile) {
  const mark = await readMark(dataDir);
  if (mark.kind === 'invalid') return mark.reason;
  const older = checkMark(mark.mark, { serial: manifest.serial, digest: head.digest });
  if (older !== null || now === null || now.head.digest === head.digest) return older;
  if (manifest.serial <= now.manifest.serial)
    return `it has serial ${manifest.serial}, but the current manifest has serial ${now.manifest.serial}`;
  if (manifest.previous === now.head.digest) return null;
  return `it does not follow the current manifest (serial ${now.manifest.serial}): create a new draft and review its changes`;
}

/**
 * Checks that a manifest belongs to this ledger and its projects. Compares it with the database or, if the database doesn't answer, with
 * the manifest in force.
 */
async function lackOfPlace(
  { dataDir }: ManifestSettings,
  now: ManifestFile | null,
  { manifest }: ManifestFile,
  { askLedger }: InstallDeps,
): Promise<string | null> {
  const rules = rulesOf(manifest);
  const ledger = await askLedger(idsOf(rules));
  const mark = await readMark(dataDir);
  const kept = (mark.kind === 'ok' ? mark.mark?.ledgerId : null) ?? now?.manifest.ledgerId ?? null;
  const other = lackOfLedger(manifest, ledger?.ledgerId ?? kept);
  if (other !== null) return other;
  return lackOfNetworks(rules, ledger?.projects ?? projectsOf(now, rules));
}

/** The projects in both manifests, with their networks in the one in force. */
function projectsOf(now: ManifestFile | null, rules: InstalledManifest['rules']): LedgerFacts['projects'] {
  const ids = new Set(idsOf(rules));
  const inForce = [...(now === null ? [] : rulesOf(now.manifest))];
  return inForce.flatMap(([network, projects]) =>
    [...projects.keys()].filter((id) => ids.has(id)).map((id) => ({ id, network })),
  );
}
