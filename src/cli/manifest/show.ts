import { resolve } from 'node:path';
import { AppError } from '../../core/domain/errors.ts';
import { type PinnedKeys, parsePinnedKeys } from '../../core/domain/manifest/manifest-signature.ts';
import { type Column, columnsText, formatFields } from '../../faces/operator/command-words.ts';
import {
  checkExpansion,
  type ManifestView,
  readManifestFile,
  viewManifest,
} from '../../faces/operator/manifest/sign-manifest.ts';
import { EXIT } from '../terminal/describe-error.ts';
import type { Result } from '../terminal/terminal.ts';

/** Shows a file's contents, on a machine that knows only the given keys. */
export async function printShown(path: string, { keys }: { keys?: string }): Promise<Result> {
  const file = await readManifestFile(resolve(path));
  checkExpansion(file.manifest);
  const data = viewManifest(file, keys === undefined ? null : readKeys(keys));
  return { data, text: describe(data), exitCode: data.problem === null ? EXIT.ok : EXIT.failed };
}

const PROJECTS: readonly Column<ManifestView['projects'][number]>[] = [
  ['NETWORK', 'network'],
  ['PROJECT', 'projectId'],
  ['POLICY', 'policy'],
  ['LARGEST SURCHARGE', 'maxSurcharge'],
  ['ADDRESSES', 'addresses'],
  ['RANGES', 'ranges'],
];

export function describe(view: ManifestView): string {
  const fields = formatFields([
    ['serial', String(view.serial)],
    ['ledger', view.ledgerId],
    ['good until', view.notAfter],
    ['digest', view.digest],
    ['follows', view.previous],
    ['signed by', view.signers.join(', ') || 'nobody'],
    ['counts', view.problem === null ? null : `NO: ${view.problem}`],
  ]);
  return [fields, columnsText(view.projects, PROJECTS)].filter((part) => part !== '').join('\n\n');
}

export function readKeys(text: string): PinnedKeys {
  const parsed = parsePinnedKeys(text);
  if (parsed.kind === 'invalid') throw new AppError('INVALID_ARGUMENT', `--keys ${parsed.reason}`);
  return parsed.pinned;
}
