import { type Hint, Message, type Text } from '../domain/message.ts';

/** Options that are called otherwise than the field that they give. */
const OPTIONS: Readonly<Record<string, string>> = {
  allowedIps: 'allow-ip',
  identities: 'identity',
  isChecked: 'no-check',
  isConfirmed: 'yes',
  isDryRun: 'dry-run',
  isFresh: 'fresh',
  isOwnNetwork: 'own-network',
  isSettled: 'yes',
  isKeyless: 'without-key',
  isKeyLost: 'key-is-lost',
  path: 'to',
  person: 'user',
  projectId: 'project',
  projectIds: 'project',
  resolution: 'as',
};

/** The option that a field is given by: `webhookUrl` by `--webhook-url`. */
export function optionOf(field: string): string {
  return `--${OPTIONS[field] ?? field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `quittance chain rescan --from 1 --to 2`. */
export function formatHint({ command, args = [], input = {} }: Hint): string {
  const options = Object.entries(input).flatMap(([field, given]) =>
    [given].flat().flatMap((value) => [optionOf(field), ...(value === true ? [] : [quoted(field, value)])]),
  );
  return ['quittance', command, ...args, ...options].join(' ');
}

/** A reason or a note is a sentence, which a shell would take apart. */
function quoted(field: string, value: string): string {
  return field === 'reason' || field === 'note' ? `"${value}"` : value;
}

/**
 * The message for a text that looks like a secret of this kind. What is typed as an argument or option stays in the history of the shell;
 * other places are files and streams.
 */
export function secretMessage(kind: string, place = 'argument'): string {
  const where = place.startsWith('argument') ? 'It may now be in your shell history' : 'It is now in that input';
  return `this looks like ${kind}. Quittance never needs one, and you should never paste it anywhere. ${where}: delete it there and, if it is real, move the funds or replace it.`;
}

/** A text with the names of the command line. */
export function writeText(text: Text): string {
  return text instanceof Message ? text.write({ field: optionOf, step: formatHint, secret: secretMessage }) : text;
}

/** The same for all texts in what is written as JSON. */
export function asWritten(_key: string, value: unknown): unknown {
  return value instanceof Message ? writeText(value) : value;
}
