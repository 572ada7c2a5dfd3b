import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { deriveAddresses, parseAccountXpub } from '@quittance/tron/account-xpub';
import { parseAddress } from '@quittance/tron/address';
import { AppError, conflict, invalidArgument, notFound } from '../../../core/domain/errors.ts';
import { describeChanges } from '../../../core/domain/manifest/describe-changes.ts';
import {
  formatManifest,
  MAX_SIGNATURES,
  type ManifestSignature,
  type ProjectEntry,
  parseManifest,
  type SignedManifest,
} from '../../../core/domain/manifest/manifest.ts';
import { headOf, type ManifestHead } from '../../../core/domain/manifest/manifest-head.ts';
import {
  lackOfSignatures,
  type PinnedKeys,
  parseSshSignature,
  signersOf,
  signHead,
} from '../../../core/domain/manifest/manifest-signature.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { nativeSha256, readManifestText } from '../../../core/payments/manifest/read-installed.ts';
import { quoteWhole } from '../input/problems.ts';

export type ManifestFile = SignedManifest & { head: ManifestHead };

/** Reads a manifest file, whether it's signed or not. Throws `NOT_FOUND` or `MANIFEST_REFUSED`. */
export async function readManifestFile(path: string): Promise<ManifestFile> {
  const read = await readManifestText(path);
  if (read.kind === 'unreadable') throw notFound`the manifest ${quoteWhole(path)} cannot be read (${read.code})`;
  const parsed = read.kind === 'refused' ? read : parseManifest(read.text);
  if (parsed.kind !== 'ok')
    throw new AppError('MANIFEST_REFUSED', `the manifest ${quoteWhole(path)}: ${parsed.reason}`);
  const { manifest, signatures } = parsed;
  return { manifest, signatures, head: headOf(manifest, nativeSha256) };
}

/** Writes a new file and never overwrites an existing one. Throws `CONFLICT` or `INVALID_ARGUMENT`. */
export async function writeNewFile(path: string, content: string, mode = 0o666): Promise<void> {
  await writeFile(path, content, { flag: 'wx', mode, flush: true }).catch((error: NodeJS.ErrnoException) => {
    const code = error.code === 'EEXIST' ? 'CONFLICT' : 'INVALID_ARGUMENT';
    throw new AppError(code, `${quoteWhole(path)} cannot be created (${error.code}): use another name or path`, {
      cause: error,
    });
  });
}

export function writeManifestFile(path: string, signed: SignedManifest): Promise<void> {
  return writeNewFile(path, formatManifest(signed));
}

/**
 * Checks that every address is valid, and that the addresses in a range are derived from its account key (1 ms for each address). Throws
 * `MANIFEST_REFUSED`.
 */
export function checkExpansion({ networks }: SignedManifest['manifest']): void {
  for (const projects of Object.values(networks)) {
    for (const [projectId, entry] of Object.entries(projects ?? {})) {
      const wrong = wrongAddress(entry);
      if (wrong === null) continue;
      const reason = `${projectId}: ${wrong}. Create a new draft, and find out who changed this draft`;
      throw new AppError('MANIFEST_REFUSED', reason);
    }
  }
}

function wrongAddress({ addresses, xpubs }: ProjectEntry): string | null {
  for (const address of addresses) {
    const parsed = parseAddress(address);
    if (parsed.kind === 'invalid') return `${address}: ${parsed.reason}`;
  }
  for (const { xpub, from, count, addresses: listed } of xpubs) {
    const shown = `${xpub.slice(0, 20)}…`;
    const parsed = parseAccountXpub(xpub);
    if (parsed.kind === 'invalid') return `${shown}: ${parsed.reason}`;
    const wrong = deriveAddresses(parsed.xpub, from, count).find(({ address }, place) => address !== listed[place]);
    if (wrong !== undefined)
      return `index ${wrong.index} of ${shown} is ${wrong.address}, but the manifest has a different address`;
  }
  return null;
}

export type ManifestView = ReturnType<typeof viewManifest>;

/**
 * Describes a manifest. `pinned` holds the keys whose signatures count, or is `null` if none are known. `signers` are the public keys of
 * everyone who signed exactly this content. `problem` says why the manifest isn't valid; it's `null` if it's valid or no keys are known.
 */
export function viewManifest({ manifest, signatures, head }: ManifestFile, pinned: PinnedKeys | null) {
  const { serial, ledgerId, notAfter, previous, networks } = manifest;
  const projects = Object.entries(networks).flatMap(([network, entries]) =>
    Object.entries(entries ?? {}).map(([projectId, { policy, maxSurcharge, addresses, xpubs }]) => {
      const derived = xpubs.reduce((sum, { count }) => sum + count, 0);
      return { network, projectId, policy, maxSurcharge, addresses: addresses.length + derived, ranges: xpubs.length };
    }),
  );
  const signers = signersOf(head.text, signatures, [...new Set(signatures.map(({ key }) => key))]);
  const problem = pinned && lackOfSignatures(head.text, signatures, pinned);
  return { serial, ledgerId, notAfter, digest: head.digest, previous, projects, signers, problem };
}

type KeyFile = { path: string; passphrase: string };

/** Only the passphrase protects the key, and with it the addresses, from someone who has a copy of the file. */
const MIN_PASSPHRASE = 12;
const SEED_BYTES = 32;

/** Creates an Ed25519 key and writes it to an age file, encrypted with a passphrase (scrypt). Throws `CONFLICT` or `INVALID_ARGUMENT`. */
export async function makeSigningKey({ path, passphrase }: KeyFile) {
  if (passphrase.length < MIN_PASSPHRASE)
    throw invalidArgument`the passphrase has ${passphrase.length} characters: use ${MIN_PASSPHRASE} or more`;
  const { Encrypter, armor } = await import('age-encryption');
  const seed = randomBytes(SEED_BYTES);
  const publicKey = publicKeyOf(seed);
  const encrypter = new Encrypter();
  encrypter.setPassphrase(passphrase);
  const sealed = armor.encode(await encrypter.encrypt(seed));
  const file = `# Signs Quittance address manifests. Keep this key on a different machine from the service.\n# public key: ${publicKey}\n${sealed}`;
  await writeNewFile(path, file, 0o600);
  return { file: path, publicKey };
}

/** Reads the 32 bytes of a key that `makeSigningKey` created. Throws `INVALID_ARGUMENT`. */
async function openSigningKey({ path, passphrase }: KeyFile): Promise<Uint8Array> {
  const wrong = (reason: Text, cause?: unknown) =>
    new AppError('INVALID_ARGUMENT', say`${{ field: 'key' }} ${quoteWhole(path)} ${reason}`, { cause });
  const text = await readFile(path, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw wrong(`cannot be read (${error.code})`, error);
  });
  const sealed = /-----BEGIN AGE ENCRYPTED FILE-----[\s\S]+-----END AGE ENCRYPTED FILE-----/.exec(text)?.[0];
  if (sealed === undefined) throw wrong(say`is not a key created by "${{ command: 'manifest key' }}"`);
  const { Decrypter, armor } = await import('age-encryption');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  const seed = await decrypter.decrypt(armor.decode(sealed)).catch((error: unknown) => {
    throw wrong('cannot be opened: the passphrase is wrong, or the file is damaged', error);
  });
  if (seed.length !== SEED_BYTES) throw wrong('does not contain an Ed25519 key');
  return seed;
}

function publicKeyOf(seed: Uint8Array): string {
  return signHead('', seed).key;
}

/** A draft that has been reviewed and is about to be signed. */
export type Unsigned = { file: ManifestFile; previous: ManifestFile | null; changes: string[] };

/**
 * Reads a draft and lists its changes. `previous` is the path of the signer's own copy of the last signed manifest; without it, everything
 * counts as new. Needs neither the database nor the network. Throws `NOT_FOUND` or `MANIFEST_REFUSED`.
 */
export async function readUnsigned(draft: string, previous: string | undefined): Promise<Unsigned> {
  const file = await readManifestFile(draft);
  checkExpansion(file.manifest);
  const before = previous === undefined ? null : await readManifestFile(previous);
  if (before !== null && file.manifest.previous !== before.head.digest) {
    throw new AppError(
      'MANIFEST_REFUSED',
      `the draft (serial ${file.manifest.serial}) does not follow ${quoteWhole(previous ?? '')} (serial ${before.manifest.serial}): use the current manifest, or create a new draft`,
    );
  }
  return { file, previous: before, changes: describeChanges(before?.manifest ?? null, file.manifest) };
}

/** Signs a reviewed draft and writes it with its existing signatures. Throws `CONFLICT` or `INVALID_ARGUMENT`. */
export async function signManifest({ file }: Unsigned, path: string, key: KeyFile) {
  return write(path, file, signHead(file.head.text, await openSigningKey(key)));
}

/** Adds a signature that `ssh-keygen -Y sign` made over the manifest's head, and writes the result. Throws `MANIFEST_REFUSED`. */
export async function addSshSignature(
  { file }: Unsigned,
  { path, signaturePath }: { path: string; signaturePath: string },
) {
  const text = await readFile(signaturePath, 'latin1').catch((error: NodeJS.ErrnoException) => {
    throw new AppError('NOT_FOUND', `the signature ${quoteWhole(signaturePath)} cannot be read (${error.code})`, {
      cause: error,
    });
  });
  const parsed = parseSshSignature(text);
  if (parsed.kind === 'invalid')
    throw new AppError('MANIFEST_REFUSED', `the signature ${quoteWhole(signaturePath)}: ${parsed.reason}`);
  const { signature } = parsed;
  if (signersOf(file.head.text, [signature], [signature.key]).length === 0) {
    throw new AppError(
      'MANIFEST_REFUSED',
      say`the signature ${quoteWhole(signaturePath)} does not belong to this draft: sign the head written by ${{ field: 'head' }}`,
    );
  }
  return write(path, file, signature);
}

async function write(path: string, { manifest, signatures, head }: ManifestFile, own: ManifestSignature) {
  const all = [...signatures.filter(({ key }) => key !== own.key), own];
  if (all.length > MAX_SIGNATURES) throw conflict`it already has ${MAX_SIGNATURES} signatures`;
  await writeManifestFile(path, { manifest, signatures: all });
  return { file: path, serial: manifest.serial, digest: head.digest, signers: all.map(({ key }) => key) };
}
