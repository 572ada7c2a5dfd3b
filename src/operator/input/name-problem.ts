import { spotSecret } from './spot-secret.ts';

/** The problem of a name of a project or key, or `null`. The schema sets the bound, in characters. */
export function nameProblem(name: string): string | null {
  const secret = spotSecret(name);
  if (secret !== null)
    return `looks like ${secret}, but names are stored and shown in plain text: give another name. If it is a real secret, replace it`;
  const length = [...name].length;
  if (length === 0) return 'is empty: give 1 to 100 characters';
  if (length > 100) return `has ${length} characters: give at most 100`;
  if (/\p{Cc}/u.test(name)) return 'contains a control character, such as a line break: remove it';
  return null;
}
