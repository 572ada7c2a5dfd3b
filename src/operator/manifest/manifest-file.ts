import { writeFile } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import {
  formatManifest,
  type ProjectEntry,
  parseManifest,
  type SignedManifest,
} from '../../domain/manifest/manifest.ts';
import { headOf, type ManifestHead } from '../../domain/manifest/manifest-head.ts';
import { nativeSha256, readManifestText } from '../../payments/manifest/read-installed.ts';
import { deriveAddresses, parseAccountXpub } from '../../tron/account-xpub.ts';
import { parseAddress } from '../../tron/address.ts';
import { quoteWhole } from '../input/clip.ts';

export type ManifestFile = SignedManifest & { head: ManifestHead };

/** Reads a manifest, signed or not. Errors: `NOT_FOUND`, `MANIFEST_REFUSED`. */
export async function readManifestFile(path: string): Promise<ManifestFile> {
  const read = await readManifestText(path);
  if (read.kind === 'unreadable')
    throw new AppError('NOT_FOUND', `the manifest ${quoteWhole(path)} cannot be read (${read.code})`);
  const parsed = read.kind === 'refused' ? read : parseManifest(read.text);
  if (parsed.kind !== 'ok')
    throw new AppError('MANIFEST_REFUSED', `the manifest ${quoteWhole(path)}: ${parsed.reason}`);
  const { manifest, signatures } = parsed;
  return { manifest, signatures, head: headOf(manifest, nativeSha256) };
}

/** Never over a file that is there. Errors: `CONFLICT`, `INVALID_ARGUMENT`. */
export async function writeNewFile(path: string, content: string): Promise<void> {
  await writeFile(path, content, { flag: 'wx', flush: true }).catch((error: NodeJS.ErrnoException) => {
    const code = error.code === 'EEXIST' ? 'CONFLICT' : 'INVALID_ARGUMENT';
    throw new AppError(code, `${quoteWhole(path)} cannot be made (${error.code}): give another name or place`, {
      cause: error,
    });
  });
}

export function writeManifestFile(path: string, signed: SignedManifest): Promise<void> {
  return writeNewFile(path, formatManifest(signed));
}

/**
 * Makes sure that every address is one, and that those of a range are what its account key yields: 1 ms each. Error: `MANIFEST_REFUSED`.
 */
export function checkExpansion({ networks }: SignedManifest['manifest']): void {
  for (const projects of Object.values(networks)) {
    for (const [projectId, entry] of Object.entries(projects ?? {})) {
      const wrong = wrongAddress(entry);
      if (wrong === null) continue;
      const reason = `${projectId}: ${wrong}. Make the draft anew, and ask who changed this one`;
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
      return `index ${wrong.index} of ${shown} is ${wrong.address}, and the manifest says otherwise`;
  }
  return null;
}
