import { readFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { describeChanges } from '../../domain/manifest/describe-changes.ts';
import { MAX_SIGNATURES, type ManifestSignature } from '../../domain/manifest/manifest.ts';
import { parseSshSignature, signersOf, signHead } from '../../domain/manifest/manifest-signature.ts';
import { say } from '../../domain/message.ts';
import { quoteWhole } from '../input/clip.ts';
import { checkExpansion, type ManifestFile, readManifestFile, writeManifestFile } from './manifest-file.ts';

/** What somebody is about to sign, who has looked through it. */
export type Unsigned = { file: ManifestFile; previous: ManifestFile | null; changes: string[] };

export type SignedView = { file: string; serial: number; digest: string; signers: string[] };

/**
 * Reads a draft, and what it changes. `previous`: the manifest that was signed before, from where it is kept by who signs; without one
 * everything is new. Needs no database and no network. Errors: `NOT_FOUND`, `MANIFEST_REFUSED`.
 */
export async function readUnsigned(draft: string, previous: string | undefined): Promise<Unsigned> {
  const file = await readManifestFile(draft);
  checkExpansion(file.manifest);
  const before = previous === undefined ? null : await readManifestFile(previous);
  if (before !== null && file.manifest.previous !== before.head.digest) {
    throw new AppError(
      'MANIFEST_REFUSED',
      `the draft (serial ${file.manifest.serial}) does not follow ${quoteWhole(previous ?? '')} (serial ${before.manifest.serial}): give the manifest that is in force, or draft anew`,
    );
  }
  return { file, previous: before, changes: describeChanges(before?.manifest ?? null, file.manifest) };
}

/** Signs what was looked at, and writes it with the signatures that it has already. Error: `CONFLICT`. */
export async function signManifest(
  { file: { manifest, signatures, head } }: Unsigned,
  { path, privateKey }: { path: string; privateKey: Uint8Array },
): Promise<SignedView> {
  return write(path, { manifest, signatures, head }, signHead(head.text, privateKey));
}

/** The same with a signature that `ssh-keygen -Y sign` made of the head. Error: `MANIFEST_REFUSED`. */
export async function addSshSignature(
  { file }: Unsigned,
  { path, signaturePath }: { path: string; signaturePath: string },
): Promise<SignedView> {
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
      say`the signature ${quoteWhole(signaturePath)} is not one of this draft: sign the head that ${{ field: 'head' }} wrote`,
    );
  }
  return write(path, file, signature);
}

async function write(
  path: string,
  { manifest, signatures, head }: ManifestFile,
  own: ManifestSignature,
): Promise<SignedView> {
  const all = [...signatures.filter(({ key }) => key !== own.key), own];
  if (all.length > MAX_SIGNATURES) throw new AppError('CONFLICT', `it has ${MAX_SIGNATURES} signatures already`);
  await writeManifestFile(path, { manifest, signatures: all });
  return { file: path, serial: manifest.serial, digest: head.digest, signers: all.map(({ key }) => key) };
}
