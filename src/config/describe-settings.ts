import { formatPinnedKeys, type PinnedKeys } from '../domain/manifest/manifest-signature.ts';
import type { SettingView } from '../operator/system/views.ts';
import { describeDatabase } from '../store/db/inspect-transport.ts';
import { parseNode } from './node-entry.ts';
import type { ReadSettings } from './read-settings.ts';
import { NODE_VARIABLES, SECRET_VARIABLES, VARIABLES, type Variable } from './settings.ts';

/** Of these a part is no secret, where the database is, and whose nodes are asked; or the value is no text. */
const IN_PART: ReadonlyMap<Variable, (value: unknown) => string> = new Map([
  ['DATABASE_URL', (url) => describeDatabase(String(url))],
  ['DATABASE_OWNER_URL', (url) => describeDatabase(String(url))],
  ['QUITTANCE_MANIFEST_KEYS', (pinned) => formatPinnedKeys(pinned as PinnedKeys)],
  ...Object.values(NODE_VARIABLES).map((name) => [name, (urls: unknown) => describeNodes(urls)] as const),
]);

/**
 * Every variable with what holds now, for people: no password, no key, and of a node's URL neither path nor options. `effective`: what is
 * decided by other settings, where a variable is not set.
 */
export function describeSettings(
  { settings, present }: Pick<ReadSettings, 'settings' | 'present'>,
  effective: Partial<Record<Variable, string>>,
): SettingView[] {
  return VARIABLES.map((name) => {
    const describe = IN_PART.get(name);
    const isSecret = describe === undefined && SECRET_VARIABLES.includes(name);
    const value = settings[name];
    const shown = effective[name] ?? (value === undefined ? '' : (describe ?? plainly)(value));
    return { name, value: isSecret || shown === '' ? null : shown, isSet: present.has(name), isSecret };
  });
}

function plainly(value: unknown): string {
  return [value].flat().join(', ');
}

/** `trongrid.io (https://api.trongrid.io)`: a provider's token may stand in the path, a key in the options. */
function describeNodes(entries: unknown): string {
  const nodes = (entries as readonly string[]).map((entry) => {
    const parsed = parseNode(entry);
    if (parsed.kind !== 'ok') return '?';
    const { protocol, host } = new URL(parsed.node.url);
    return `${parsed.node.operator} (${protocol}//${host})`;
  });
  return nodes.join(', ');
}
