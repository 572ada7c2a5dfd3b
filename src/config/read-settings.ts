import { editDistance } from './edit-distance.ts';
import { readSecretFiles } from './secret-files.ts';
import {
  FILE_VARIABLES,
  SECRET_VARIABLES,
  SETTINGS,
  type Setting,
  type SettingProblem,
  type Settings,
  VARIABLES,
  type Variable,
} from './settings.ts';
import { showValue } from './url-problems.ts';

/** A fault in the environment. `message` is a whole sentence with the fix and holds no secret. */
export type ConfigProblem = { variable: string; message: string };

/** `settings` holds the valid and the default values; `present` names the variables that are set, valid or not. */
export type ReadSettings = {
  settings: Partial<Settings>;
  present: ReadonlySet<Variable>;
  errors: ConfigProblem[];
  warnings: ConfigProblem[];
};

/** Reads every variable as it is declared. An empty variable counts as unset, as in compose files and unit files. */
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
  // A list of URLs may hold a provider's token in each path.
  if (text.includes('://') && SETTINGS[variable].isList) return `${variable} ${problem.text}`;
  const shown = SECRET_VARIABLES.includes(variable) ? '(value not shown):' : `is ${showValue(text)}:`;
  return `${variable} ${shown} ${problem.text.replace(/^(is|must|holds|has|starts|names|does) /, 'it $1 ')}`;
}

/** The farthest that a misspelt name lies from the right one. */
const MAX_MISSPELT_LETTERS = 2;

/** Read by commands alone, and by programs of integrators that run beside the service on a developer's machine. */
const INTEGRATOR_VARIABLES = [
  ...['QUITTANCE_ADMIN_KEY', 'QUITTANCE_API_KEY', 'QUITTANCE_SERVER', 'QUITTANCE_URL', 'QUITTANCE_WEBHOOK_SECRET'],
];

const KNOWN: readonly string[] = [...VARIABLES, ...FILE_VARIABLES.keys()];

/** Variables that are not ours but look as if they were meant for us. Their values are never shown. */
function readStrangers(env: NodeJS.ProcessEnv) {
  const errors: ConfigProblem[] = [];
  const warnings: ConfigProblem[] = [];
  for (const variable of Object.keys(env)) {
    if (KNOWN.includes(variable) || env[variable] === '') continue;
    if (INTEGRATOR_VARIABLES.includes(variable)) continue;
    const isOurs = variable.startsWith('QUITTANCE_');
    const meant = nearest(variable);
    // Another program's variable may resemble ours; with ours set there is nothing to guess.
    if (meant.length > 0 && (isOurs || !meant.some((name) => (env[name]?.trim() ?? '') !== ''))) {
      errors.push({
        variable,
        message: `${variable} is not a variable of Quittance: did you mean ${meant.join(' or ')}? Rename it, or unset it.`,
      });
    } else if (isOurs) {
      warnings.push({ variable, message: `${variable} is not a variable of Quittance and has no effect.` });
    }
  }
  return { errors, warnings };
}

function nearest(variable: string): string[] {
  const asked = variable.toUpperCase();
  // Every command asks this of each variable of its environment, and few are as long as one of ours.
  const alike = KNOWN.filter((name) => Math.abs(name.length - asked.length) <= MAX_MISSPELT_LETTERS);
  const distances = alike.map((name) => ({ name, letters: editDistance(asked, name) }));
  const least = Math.min(...distances.map(({ letters }) => letters));
  if (least > MAX_MISSPELT_LETTERS) return [];
  return distances.filter(({ letters }) => letters === least).map(({ name }) => name);
}
