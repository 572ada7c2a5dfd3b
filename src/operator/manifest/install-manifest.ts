import { AppError } from '../../domain/errors.ts';
import { describeChanges } from '../../domain/manifest/describe-changes.ts';
import { formatManifest } from '../../domain/manifest/manifest.ts';
import { lackOfSignatures } from '../../domain/manifest/manifest-signature.ts';
import type { UnixMs } from '../../domain/time.ts';
import {
  type InstalledManifest,
  idsOf,
  lackOfLedger,
  lackOfNetworks,
  lackOfTime,
  type ManifestSettings,
  rulesOf,
} from '../../payments/manifest/read-installed.ts';
import { checkMark, readMark } from '../../payments/manifest/serial-mark.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';
import type { Database } from '../../store/db/database.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import { listRules } from '../../store/ledger/projects.ts';
import { checkExpansion, type ManifestFile, readManifestFile } from './manifest-file.ts';

export type InstalledView = { file: string; serial: number; changes: string[] };

/** What the database says: the id of its ledger, and its projects (UUIDs) of those asked for. */
type LedgerFacts = { ledgerId: string | null; projects: readonly { id: string; network: string }[] };

export async function readLedgerFacts(db: Database, projectIds: readonly string[]): Promise<LedgerFacts> {
  const identity = await findLedgerIdentity(db);
  return { ledgerId: identity?.id ?? null, projects: await listRules(db, projectIds) };
}

/** `askLedger`: `null` where the database does not answer; then it is compared with what was in force here. */
type InstallDeps = { now: UnixMs; askLedger(projectIds: readonly string[]): Promise<LedgerFacts | null> };

/** Puts a signed manifest in the place of the one in force; running services take it within seconds. Error: `MANIFEST_REFUSED`. */
export async function installManifest(
  settings: ManifestSettings,
  path: string,
  deps: InstallDeps,
): Promise<InstalledView> {
  const next = await readManifestFile(path);
  // One that is damaged is replaced; the mark still knows its serial.
  const now = await readInForce(settings).catch(() => null);
  const refused =
    lackOfSignatures(next.head.text, next.signatures, settings.pinned) ??
    (await lackOfOrder(settings, now, next)) ??
    lackOfTime(next.manifest, deps.now) ??
    (await lackOfPlace(settings, now, next, deps));
  if (refused !== null) throw new AppError('MANIFEST_REFUSED', `nothing was installed: ${refused}`);
  checkExpansion(next.manifest);
  await writePrivateFile(settings.path, formatManifest(next));
  return {
    file: settings.path,
    serial: next.manifest.serial,
    changes: describeChanges(now?.manifest ?? null, next.manifest),
  };
}

/** The manifest in force; `null`: there is none yet. */
export async function readInForce({ path }: Pick<ManifestSettings, 'path'>): Promise<ManifestFile | null> {
  try {
    return await readManifestFile(path);
  } catch (error) {
    if (error instanceof AppError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

async function lackOfOrder(
  { dataDir }: ManifestSettings,
  now: ManifestFile | null,
  { manifest, head }: ManifestFile,
): Promise<string | null> {
  const mark = await readMark(dataDir);
  if (mark.kind === 'invalid') return mark.reason;
  const older = checkMark(mark.mark, { serial: manifest.serial, digest: head.digest });
  if (older !== null || now === null || now.head.digest === head.digest) return older;
  if (manifest.serial <= now.manifest.serial)
    return `it is of serial ${manifest.serial}, and serial ${now.manifest.serial} is in force`;
  if (manifest.previous === now.head.digest) return null;
  return `it does not follow the one in force (serial ${now.manifest.serial}): draft anew, so that somebody sees what changes`;
}

/** Whether it is of this ledger and its projects. The database knows best; else what was in force here says so. */
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

/** The projects that both have, with the networks that the one in force has them under. */
function projectsOf(now: ManifestFile | null, rules: InstalledManifest['rules']): LedgerFacts['projects'] {
  const ids = new Set(idsOf(rules));
  const inForce = [...(now === null ? [] : rulesOf(now.manifest))];
  return inForce.flatMap(([network, projects]) =>
    [...projects.keys()].filter((id) => ids.has(id)).map((id) => ({ id, network })),
  );
}
