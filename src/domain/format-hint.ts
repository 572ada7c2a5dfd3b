import type { Hint } from './message.ts';

/** Options that are called otherwise than the field that they give. */
const OPTIONS: Readonly<Record<string, string>> = {
  allowedIps: 'allow-ip',
  identities: 'identity',
  isConfirmed: 'yes',
  isDryRun: 'dry-run',
  isFresh: 'fresh',
  isKeyLost: 'key-is-lost',
  path: 'to',
  projectId: 'project',
  resolution: 'as',
};

/** The option that a field is given by: `webhookUrl` by `--webhook-url`. */
export function optionOf(field: string): string {
  return `--${OPTIONS[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** A next step as its command, which a page shows too where it has no link for it: `quittance chain rescan --from 1 --to 2`. */
export function formatHint({ command, args = [], input = {} }: Hint): string {
  const options = Object.entries(input).flatMap(([field, given]) =>
    [given].flat().flatMap((value) => [optionOf(field), ...(value === true ? [] : [quoted(field, value)])]),
  );
  return ['quittance', command, ...args, ...options].join(' ');
}

/** A reason is a sentence, which a shell would take apart. */
function quoted(field: string, value: string): string {
  return field === 'reason' ? `"${value}"` : value;
}
