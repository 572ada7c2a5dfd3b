import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { FILE_VARIABLES, type Variable } from './settings.ts';

type SecretFileProblem = { variable: string; message: string };

/** `texts` has an empty text for a secret whose file is of no use: it is meant to be set. */
export type SecretFiles = {
  texts: ReadonlyMap<Variable, string>;
  errors: SecretFileProblem[];
  warnings: SecretFileProblem[];
};

/** Reads the files that `<NAME>_FILE` variables name. No text of the variables or the files is ever shown. */
export function readSecretFiles(env: NodeJS.ProcessEnv): SecretFiles {
  const texts = new Map<Variable, string>();
  const errors: SecretFileProblem[] = [];
  const warnings: SecretFileProblem[] = [];
  for (const [variable, secret] of FILE_VARIABLES) {
    const path = env[variable]?.trim() ?? '';
    if (path === '') continue;
    const isTwice = (env[secret]?.trim() ?? '') !== '';
    const file = isTwice ? null : readSecretFile(path);
    if (file === null) {
      errors.push({ variable, message: `${variable} and ${secret} are both set: keep one of them.` });
    } else if (file.kind === 'invalid') {
      errors.push({ variable, message: `${variable} names a file (not shown) that ${file.reason}.` });
    } else if (file.isOpen) {
      warnings.push({ variable, message: `${variable} names a file that every user may read: chmod 600, or 640.` });
    }
    texts.set(secret, file?.kind === 'ok' ? file.text : '');
  }
  return { texts, errors, warnings };
}

/** `isOpen`: every user of this machine may read the file. A reason completes "… names a file that …". */
type SecretFile = { kind: 'ok'; text: string; isOpen: boolean } | { kind: 'invalid'; reason: string };

/** Far more than four keys or any URL take. */
const MAX_BYTES = 16_384;
const READABLE_BY_ALL = 0o004;

function readSecretFile(path: string): SecretFile {
  const invalid = (reason: string): SecretFile => ({ kind: 'invalid', reason });
  let descriptor: number | undefined;
  try {
    // A pipe that nobody writes to would hold up the start for ever.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return invalid('is not a regular file');
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    const length = readSync(descriptor, bytes);
    if (length > MAX_BYTES) return invalid(`is larger than ${MAX_BYTES} bytes`);
    const text = bytes.toString('utf8', 0, length).trim();
    if (text === '') return invalid('is empty');
    if (/[\0\r\n]/.test(text)) return invalid('holds more than one line');
    return { kind: 'ok', text, isOpen: (stat.mode & READABLE_BY_ALL) !== 0 };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') return invalid('is not there');
    if (code === 'EACCES') return invalid('this user may not read');
    return invalid(`cannot be read (${code})`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
