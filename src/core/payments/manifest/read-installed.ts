import { hash } from 'node:crypto';
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeId, encodeId } from '../../domain/ids.ts';
import {
  type AddressProof,
  MAX_MANIFEST_BYTES,
  type Manifest,
  parseManifest,
  type SignedManifest,
  vouchedAddresses,
} from '../../domain/manifest/manifest.ts';
import { headOf, type ManifestHead, pathOf, type Sha256 } from '../../domain/manifest/manifest-head.ts';
import { lackOfSignatures, type PinnedKeys } from '../../domain/manifest/manifest-signature.ts';
import { parseAmount } from '../../domain/money.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import { parseObject } from '../../runtime/parse-object.ts';
import { writePrivateFile } from '../../runtime/private-file.ts';

/** `mode` determines whether unsigned addresses are rejected or only reported. */
export type ManifestSettings = { path: string; pinned: PinnedKeys; mode: 'warn' | 'enforce'; dataDir: string };

/** The UUID of an address's project, and the index of its leaf in the tree. */
type Place = { projectId: string; leaf: number };

/** A project's signed settings, without its addresses. */
type VouchedRule = { policy: Policy; maxSurchargeMicro: bigint };

/** `places` contains the signed addresses by network. `rules` contains the signed rules by network and by the projects' UUIDs. */
export type InstalledManifest = SignedManifest & {
  head: ManifestHead;
  places: ReadonlyMap<string, ReadonlyMap<string, Place>>;
  rules: ReadonlyMap<string, ReadonlyMap<string, VouchedRule>>;
};

/** A call takes 0.3 µs; a JavaScript implementation would take eight times as long. */
export const nativeSha256: Sha256 = (text) => hash('sha256', text, 'hex');

export type ReadInstalled = { kind: 'ok'; installed: InstalledManifest } | { kind: 'refused'; reason: string };

type ManifestText =
  | { kind: 'ok'; text: string }
  | { kind: 'unreadable'; code: string }
  | { kind: 'refused'; reason: string };

/** Returns a manifest file's text. Checks the size first, so that a process never reads more than a manifest can contain. */
export async function readManifestText(path: string): Promise<ManifestText> {
  try {
    const file = await open(path, 'r');
    try {
      const found = await file.stat();
      if (!found.isFile()) return { kind: 'refused', reason: 'it is not a file' };
      if (found.size > MAX_MANIFEST_BYTES) {
        return {
          kind: 'refused',
          reason: `it has ${found.size} bytes, but a manifest has at most ${MAX_MANIFEST_BYTES}`,
        };
      }
      return { kind: 'ok', text: await file.readFile('utf8') };
    } finally {
      await file.close();
    }
  } catch (error) {
    return { kind: 'unreadable', code: String((error as NodeJS.ErrnoException).code) };
  }
}

/**
 * `ledgerId` is the id of the database's ledger, or `null` if unknown. `now` is `null` if it doesn't matter whether the manifest has
 * expired.
 */
type ReadBy = { ledgerId: string | null; now: UnixMs | null };

/**
 * Reads the installed manifest. Checks its signatures, and that no newer manifest has been installed here. A manifest that expires while
 * it's in force remains in force, but an expired manifest can't come into force.
 */
export async function readInstalled(settings: ManifestSettings, { ledgerId, now }: ReadBy): Promise<ReadInstalled> {
  const { path, pinned, dataDir } = settings;
  const refused = (reason: string): ReadInstalled => ({
    kind: 'refused',
    reason: `the address manifest ${path}: ${reason}`,
  });
  const read = await readManifestText(path);
  if (read.kind === 'unreadable')
    return refused(`it cannot be read (${read.code}): install one with "quittance manifest install"`);
  if (read.kind === 'refused') return refused(read.reason);
  const parsed = parseManifest(read.text);
  if (parsed.kind === 'invalid') return refused(parsed.reason);
  const { manifest, signatures } = parsed;
  const head = headOf(manifest, nativeSha256);
  const lack = lackOfSignatures(head.text, signatures, pinned) ?? lackOfLedger(manifest, ledgerId);
  if (lack !== null) return refused(lack);
  const mark = await readMark(dataDir);
  if (mark.kind === 'invalid') return refused(mark.reason);
  const wasInForce = mark.mark?.digest === head.digest;
  const older =
    checkMark(mark.mark, { serial: manifest.serial, digest: head.digest }) ??
    (wasInForce || now === null ? null : lackOfTime(manifest, now));
  if (older !== null) return refused(older);
  return {
    kind: 'ok',
    installed: { manifest, signatures, head, places: placesOf(manifest), rules: rulesOf(manifest) },
  };
}

/** Returns why a manifest doesn't belong to this ledger. Returns `null` if it does, or if the ledger is unknown. */
export function lackOfLedger({ ledgerId }: Pick<Manifest, 'ledgerId'>, known: string | null): string | null {
  if (known === null || ledgerId === known) return null;
  return `it belongs to the ledger ${ledgerId}, but this ledger is ${known}`;
}

/** Returns why a manifest can no longer come into force, or `null` if it can. */
export function lackOfTime({ notAfter }: Pick<Manifest, 'notAfter'>, now: UnixMs): string | null {
  if (now <= Date.parse(notAfter)) return null;
  return `it expired at ${notAfter}: review it, then create and sign a new manifest`;
}

/** Returns the proof that an address is signed, and the project that it's signed for. Returns `null` if it isn't signed. */
export function proveAddress(
  { head, signatures, places }: InstalledManifest,
  network: string,
  address: string,
): AddressProof | null {
  const place = places.get(network)?.get(address);
  if (place === undefined) return null;
  const projectId = encodeId('prj', place.projectId);
  return { head: head.text, signatures, network, projectId, path: pathOf(head.tree, place.leaf) };
}

export function idsOf(rules: InstalledManifest['rules']): string[] {
  return [...rules.values()].flatMap((projects) => [...projects.keys()]);
}

/**
 * Returns why a manifest doesn't match the existing projects (UUIDs), each of which must be listed under its own network. Returns `null` if
 * it matches.
 */
export function lackOfNetworks(
  rules: InstalledManifest['rules'],
  projects: readonly { id: string; network: string }[],
): string | null {
  const strange = projects.find(({ id, network }) => rules.get(network)?.has(id) !== true);
  if (strange === undefined) return null;
  const listed = [...rules].find(([, ids]) => ids.has(strange.id))?.[0];
  return `it lists ${encodeId('prj', strange.id)} under ${listed}, but this project is on ${strange.network}: create a new draft`;
}

/** The result is keyed by the projects' UUIDs. */
export function rulesOf({ networks }: Pick<Manifest, 'networks'>): InstalledManifest['rules'] {
  return new Map(
    Object.entries(networks).map(([network, projects]) => [
      network,
      new Map(
        Object.entries(projects ?? {}).map(([projectId, { policy, maxSurcharge }]) => {
          const amount = parseAmount(maxSurcharge);
          const maxSurchargeMicro = amount.kind === 'ok' ? amount.amountMicro : 0n;
          return [decodeId('prj', projectId) ?? '', { policy, maxSurchargeMicro }];
        }),
      ),
    ]),
  );
}

function placesOf({ networks }: Manifest): InstalledManifest['places'] {
  const places = new Map<string, Map<string, Place>>();
  const uuids = new Map<string, string>();
  let leaf = 0;
  for (const { network, projectId: id, address } of vouchedAddresses(networks)) {
    const projectId = uuids.get(id) ?? decodeId('prj', id) ?? '';
    uuids.set(id, projectId);
    const ofNetwork = places.get(network) ?? new Map<string, Place>();
    places.set(network, ofNetwork.set(address, { projectId, leaf }));
    leaf += 1;
  }
  return places;
}

/** The newest manifest that has been in force here. It's stored outside the database and its backups. */
type SerialCheckpoint = { serial: number; digest: string };
/** `ledgerId` is the manifest's ledger, or `null` if an older release wrote the file. */
type KeptMark = SerialCheckpoint & { ledgerId: string | null };

function markPath(dataDir: string): string {
  return join(dataDir, 'manifest-serial.json');
}

/** The mark is `null` if no manifest has been in force here yet. */
export async function readMark(
  dataDir: string,
): Promise<{ kind: 'ok'; mark: KeptMark | null } | { kind: 'invalid'; reason: string }> {
  const path = markPath(dataDir);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => error);
  if (typeof text !== 'string') {
    if (text.code === 'ENOENT') return { kind: 'ok', mark: null };
    return { kind: 'invalid', reason: `${path}, which records the newest manifest, cannot be read (${text.code})` };
  }
  const { serial, digest, ledgerId } = parseObject(text);
  if (Number.isSafeInteger(serial) && typeof digest === 'string') {
    const mark = { serial: serial as number, digest, ledgerId: typeof ledgerId === 'string' ? ledgerId : null };
    return { kind: 'ok', mark };
  }
  return {
    kind: 'invalid',
    reason: `${path}, which records the newest manifest, is damaged: restore it, or remove it if you know the cause`,
  };
}

/** Returns why a manifest can't follow the newest one, or `null` if it can. */
export function checkMark(mark: SerialCheckpoint | null, { serial, digest }: SerialCheckpoint): string | null {
  if (mark === null || serial > mark.serial || (serial === mark.serial && digest === mark.digest)) return null;
  return serial === mark.serial
    ? `it differs from the manifest with the same serial ${serial} that was in force here`
    : `it has serial ${serial}, but serial ${mark.serial} was already in force here: install the newest manifest`;
}

/** The caller must have checked that `mark` may follow the stored mark. */
export async function writeMark(dataDir: string, mark: KeptMark): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writePrivateFile(markPath(dataDir), `${JSON.stringify(mark)}\n`);
}
