import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { AppError, invalidArgument, usageError } from '../../core/domain/errors.ts';
import {
  type PinnedKeys,
  parsePinnedKeys,
  SIGNATURE_NAMESPACE,
} from '../../core/domain/manifest/manifest-signature.ts';
import { type Column, columnsText, formatFields } from '../../faces/operator/command-words.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import {
  addSshSignature,
  checkExpansion,
  type ManifestView,
  makeSigningKey,
  readManifestFile,
  readUnsigned,
  signManifest,
  type Unsigned,
  viewManifest,
  writeNewFile,
} from '../../faces/operator/manifest/sign-manifest.ts';
import { askSecret, confirm, hasPerson } from '../terminal/ask-person.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

type PassphraseOption = { passphraseFile?: string };
type SignOptions = PassphraseOption & {
  key?: string;
  previous?: string;
  head?: string;
  signature?: string;
  output: string;
  yes?: boolean;
};

export async function printNewKey(terminal: Terminal, file: string, options: PassphraseOption): Promise<Result> {
  const passphrase = await readPassphrase(terminal, options, true);
  const data = await makeSigningKey({ path: resolve(file), passphrase });
  return {
    data,
    text: formatFields([
      ['signing key', data.file],
      ['public key', data.publicKey],
    ]),
    next: `keep two copies of the key file and two of its passphrase, but none on the server. On the server, set QUITTANCE_MANIFEST_KEYS=${data.publicKey}`,
  };
}

export async function printSigned(terminal: Terminal, draft: string, options: SignOptions): Promise<Result> {
  const { key, head, signature, output } = options;
  if ([key, head, signature].filter((each) => each !== undefined).length !== 1)
    throw usageError`use one of --key, --head and --signature to sign the draft`;
  const unsigned = await readUnsigned(resolve(draft), options.previous && resolve(options.previous));
  terminal.note(describeUnsigned(unsigned));
  const asked = { question: 'Type yes to sign this: ', nothing: 'nothing was signed' };
  if (options.yes !== true) await confirm(terminal, { ...asked, advice: 'review the changes and confirm' });
  if (head !== undefined) return printHead(unsigned, resolve(head));
  const path = resolve(output);
  const sign = async () => {
    const passphrase = await readPassphrase(terminal, options, false);
    return signManifest(unsigned, path, { path: resolve(key ?? ''), passphrase });
  };
  const data =
    signature === undefined
      ? await sign()
      : await addSshSignature(unsigned, { path, signaturePath: resolve(signature) });
  return {
    data,
    text: formatFields([
      ['signed', data.file],
      ['serial', String(data.serial)],
      ['by', data.signers.join(', ')],
    ]),
    next: 'keep a copy of the manifest here, to use with --previous next time. On the server, run: quittance manifest install',
  };
}

async function printHead({ file }: Unsigned, path: string): Promise<Result> {
  await writeNewFile(path, file.head.text);
  return {
    data: { file: path, serial: file.manifest.serial, digest: file.head.digest },
    text: formatFields([['head', path]]),
    next: `sign it with: ssh-keygen -Y sign -f KEY -n ${SIGNATURE_NAMESPACE} ${path}; then run this command again with --signature ${path}.sig`,
  };
}

function describeUnsigned({ file, previous, changes }: Unsigned): string {
  const { serial, notAfter, ledgerId } = file.manifest;
  return [
    `You are about to sign serial ${serial} for the ledger ${ledgerId}, valid until ${notAfter}.`,
    previous === null
      ? 'You did not use --previous, so this is the full content. Payers will see these addresses: each one must be in your wallet.'
      : `Changes since serial ${previous.manifest.serial}:`,
    ...(changes.length === 0 ? ['  no changes'] : changes.map((change) => `  ${change}`)),
  ].join('\n');
}

async function readPassphrase(terminal: Terminal, { passphraseFile }: PassphraseOption, isNew: boolean) {
  if (passphraseFile !== undefined) {
    const text = await readFile(passphraseFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
      const reason = `--passphrase-file ${clip(passphraseFile)} cannot be read (${error.code})`;
      throw new AppError('INVALID_ARGUMENT', reason, { cause: error });
    });
    return text.trim();
  }
  if (!hasPerson(terminal))
    throw invalidArgument`there is no terminal to ask for the passphrase: use --passphrase-file`;
  const typed = await askSecret(terminal, 'Passphrase for the signing key: ');
  const again = isNew ? await askSecret(terminal, 'Repeat the passphrase: ') : typed;
  if (typed === null || typed !== again) throw invalidArgument`the passphrases do not match, so nothing was done`;
  return typed;
}

/** Shows a file's contents, on a machine that knows only the given keys. */
export async function printShown(path: string, { keys }: { keys?: string }): Promise<Result> {
  const file = await readManifestFile(resolve(path));
  checkExpansion(file.manifest);
  const data = viewManifest(file, keys === undefined ? null : readKeys(keys));
  return { data, text: describe(data), hasFailed: data.problem !== null };
}

const PROJECTS: readonly Column<ManifestView['projects'][number]>[] = [
  ['NETWORK', 'network'],
  ['PROJECT', 'projectId'],
  ['POLICY', 'policy'],
  ['LARGEST SURCHARGE', 'maxSurcharge'],
  ['ADDRESSES', 'addresses'],
  ['RANGES', 'ranges'],
];

export function describe(view: ManifestView): string[] {
  const fields = formatFields([
    ['serial', String(view.serial)],
    ['ledger', view.ledgerId],
    ['good until', view.notAfter],
    ['digest', view.digest],
    ['follows', view.previous],
    ['signed by', view.signers.join(', ') || 'nobody'],
    ['counts', view.problem === null ? null : `NO: ${view.problem}`],
  ]);
  return [fields, columnsText(view.projects, PROJECTS)];
}

export function readKeys(text: string): PinnedKeys {
  const parsed = parsePinnedKeys(text);
  if (parsed.kind === 'invalid') throw invalidArgument`--keys ${parsed.reason}`;
  return parsed.pinned;
}
