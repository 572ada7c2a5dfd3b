import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import {
  FILE_VARIABLES,
  SECRET_VARIABLES,
  SETTINGS,
  type Setting,
  type SettingProblem,
  type Settings,
  showValue,
  VARIABLES,
  type Variable,
} from './settings.ts';

/** An error in the environment. `message` is a whole sentence that says what to do, without secrets. */
export type ConfigProblem = { variable: string; message: string };

/** `settings` contains the valid values and the defaults. `present` contains the names of the variables that are set, valid or not. */
export type ReadSettings = {
  settings: Partial<Settings>;
  present: ReadonlySet<Variable>;
  errors: ConfigProblem[];
  warnings: ConfigProblem[];
};

/** Reads every declared variable. An empty variable counts as unset, as in compose files and unit files. */
export function readSettings(env: NodeJS.ProcessEnv): ReadSettings {
  const settings: Record<string, unknown> = {};
  const present = new Set<Variable>();
  const files = readSecretFiles(env);
  const errors: ConfigProblem[] = [];
  for (const variable of VARIABLES) {
    const setting: Setting<unknown> = SETTINGS[variable];
    const text = files.texts.get(variable) ?? env[variable]?.trim() ?? '';
    if (files.texts.has(variable)) present.add(variable);
    if (text === '') {
      settings[variable] = structuredClone(setting.fallback);
      continue;
    }
    present.add(variable);
    const read = setting.read(text);
    if ('value' in read) settings[variable] = read.value;
    else for (const problem of read.problems) errors.push({ variable, message: sentence(variable, text, problem) });
  }
  const strangers = readStrangers(env);
  return {
    settings: settings as Partial<Settings>,
    present,
    errors: [...files.errors, ...errors, ...strangers.errors],
    warnings: [...files.warnings, ...strangers.warnings],
  };
}

function sentence(variable: Variable, text: string, problem: SettingProblem): string {
  if (problem.isAboutEntry) return `${variable}: ${problem.text}`;
  // Each path in a list of URLs may contain a provider's token.
  if (text.includes('://') && SETTINGS[variable].isList) return `${variable} ${problem.text}`;
  const shown = SECRET_VARIABLES.includes(variable) ? '(value not shown):' : `is ${showValue(text)}:`;
  return `${variable} ${shown} ${problem.text.replace(/^(is|must|holds|has|starts|names|does) /, 'it $1 ')}`;
}

/** The largest edit distance for a misspelled name. */
const MAX_MISSPELT_LETTERS = 2;

/** Variables that are read only by commands, and by integrators' programs that run next to the service on a developer's machine. */
const INTEGRATOR_VARIABLES = [
  ...['QUITTANCE_ADMIN_KEY', 'QUITTANCE_API_KEY', 'QUITTANCE_SERVER', 'QUITTANCE_URL', 'QUITTANCE_WEBHOOK_SECRET'],
];

const KNOWN: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys()];

/** Finds variables that Quittance doesn't know, but whose names look like its own. Their values are never shown. */
function readStrangers(env: NodeJS.ProcessEnv) {
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  for (const variable of Object.keys(env)) {
    if (KNOWN.includes(variable) || env[variable] === '') continue;
    if (INTEGRATOR_VARIABLES.includes(variable)) continue;
    const isOurs = variable.startsWith('QUITTANCE_');
    const meant = nearest(variable);
    // Another program's variable may have a name similar to ours. If our variable is set too, it isn't a typo.
    if (meant.length > 0 && (isOurs || !meant.some((name) => (env[name]?.trim() ?? '') !== ''))) {
      errors.push({
        variable,
        message: `${variable} is not a Quittance variable: did you mean ${meant.join(' or ')}? Rename it, or unset it.`,
      });
    } else if (isOurs) {
      warnings.push({ variable, message: `${variable} is not a Quittance variable and has no effect.` });
    }
  }
  return { errors, warnings };
}

function nearest(variable: string): string[] {
  const asked = variable.toUpperCase();
  // Every command compares each of its environment variables, so this skips names whose length is clearly different, and stops early.
  const alike = KNOWN.filter((name) => Math.abs(name.length - asked.length) <= MAX_MISSPELT_LETTERS);
  const distances = alike.map((name) => ({ name, letters: editDistance(asked, name, MAX_MISSPELT_LETTERS) }));
  const least = Math.min(...distances.map(({ letters }) => letters));
  if (least > MAX_MISSPELT_LETTERS) return [];
  return distances.filter(({ letters }) => letters === least).map(({ name }) => name);
}

/**
 * The number of letters inserted, dropped, replaced or swapped with their neighbour between two words (Damerau-Levenshtein in its "optimal
 * string alignment" form), or infinity as soon as it's certain to exceed `most`.
 */
export function editDistance(left: string, right: string, most = Number.POSITIVE_INFINITY): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const isSame = left[row - 1] === right[column - 1];
      const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwap ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, current];
    if (Math.min(...last) > most && Math.min(...beforeLast) > most) return Number.POSITIVE_INFINITY;
  }
  return at(last, right.length);
}

function at(row: number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/** Reads the files whose paths are in `<NAME>_FILE` variables. The content of variables and files is never shown. */
function readSecretFiles(env: NodeJS.ProcessEnv) {
  /** Contains an empty string for a secret whose file can't be used, because the secret was meant to be set. */
  const texts = new Map<Variable, string>();
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  for (const [variable, secret] of FILE_VARIABLES) {
    const path = env[variable]?.trim() ?? '';
    if (path === '') continue;
    const isTwice = (env[secret]?.trim() ?? '') !== '';
    const file = isTwice ? null : readSecretFile(path);
    if (file === null) {
      errors.push({ variable, message: `${variable} and ${secret} are both set: unset one of them.` });
    } else if (file.kind === 'invalid') {
      errors.push({ variable, message: `${variable} points to a file (not shown) that ${file.reason}.` });
    } else if (file.isOpen) {
      warnings.push({
        variable,
        message: `${variable} points to a file that every user can read: run chmod 600 (or 640) on it.`,
      });
    }
    texts.set(secret, file?.kind === 'ok' ? file.text : '');
  }
  return { texts, errors, warnings };
}

/** `isOpen` means that every user of this machine can read the file. A reason completes "… names a file that …". */
type SecretFile = { kind: 'ok'; text: string; isOpen: boolean } | { kind: 'invalid'; reason: string };

/** Four keys, or any URL, are far shorter than this. */
const MAX_BYTES = 16_384;
const READABLE_BY_ALL = 0o004;

function readSecretFile(path: string): SecretFile {
  const invalid = (reason: string): SecretFile => ({ kind: 'invalid', reason });
  let descriptor: number | undefined;
  try {
    // Opening a pipe that has no writer would block the start permanently.
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return invalid('is not a regular file');
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    const length = readSync(descriptor, bytes);
    if (length > MAX_BYTES) return invalid(`is larger than ${MAX_BYTES} bytes`);
    const text = bytes.toString('utf8', 0, length).trim();
    if (text === '') return invalid('is empty');
    if (/[\0\r\n]/.test(text)) return invalid('contains more than one line');
    return { kind: 'ok', text, isOpen: (stat.mode & READABLE_BY_ALL) !== 0 };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'ENOENT') return invalid('does not exist');
    if (code === 'EACCES') return invalid('this user may not read');
    return invalid(`cannot be read (${code})`);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
