import type { Manifest, ProjectEntry, XpubRange } from './manifest.ts';

/**
 * If there are more addresses than this, the description shows only their number, because no one compares thousands by eye. For a range,
 * the first and the last address are enough to identify the wallet.
 */
const MAX_LISTED = 50;

const EMPTY: ProjectEntry = { addresses: [], maxSurcharge: '', policy: 'tail', xpubs: [] };

/** Describes the differences between two manifests, one per line. Returns an empty list if both sign the same settings. */
export function describeChanges(
  before: Pick<Manifest, 'networks'> | null,
  after: Pick<Manifest, 'networks'>,
): string[] {
  const [old, now] = [projectsOf(before), projectsOf(after)];
  const names = [...new Set([...old.keys(), ...now.keys()])].sort();
  return names.flatMap((name) => {
    const [was, is] = [old.get(name), now.get(name)];
    const lines = describeProject(was ?? EMPTY, is ?? EMPTY);
    if (was !== undefined && is !== undefined) {
      if (was.policy !== is.policy) lines.push(`policy: ${was.policy} becomes ${is.policy}`);
      if (was.maxSurcharge !== is.maxSurcharge) {
        lines.push(`surcharge limit: ${was.maxSurcharge} becomes ${is.maxSurcharge} USDT`);
      }
      return lines.map((line) => `${name}: ${line}`);
    }
    if (is !== undefined) lines.unshift(`policy ${is.policy}, surcharge limit ${is.maxSurcharge} USDT`);
    return [
      `${name}: the project is ${is === undefined ? 'REMOVED' : 'new'}`,
      ...lines.map((line) => `${name}: ${line}`),
    ];
  });
}

function projectsOf(manifest: Pick<Manifest, 'networks'> | null): Map<string, ProjectEntry> {
  const projects = Object.entries(manifest?.networks ?? {}).flatMap(([network, entries]) =>
    Object.entries(entries ?? {}).map(([id, entry]) => [`${network} ${id}`, entry] as const),
  );
  return new Map(projects);
}

function describeProject(was: ProjectEntry, is: ProjectEntry): string[] {
  const [old, now] = [allOf(was), allOf(is)];
  return [
    ...describeList(
      'added',
      is.addresses.filter((address) => !old.has(address)),
    ),
    ...is.xpubs.flatMap((range) => describeRange('added', range, old)),
    ...is.xpubs
      .filter(({ xpub }) => was.xpubs.length > 0 && !was.xpubs.some((range) => range.xpub === xpub))
      .map(({ xpub }) => `DIFFERENT account key: ${xpub}. Compare it with your wallet`),
    ...describeList(
      'REMOVED',
      was.addresses.filter((address) => !now.has(address)),
    ),
    ...was.xpubs.flatMap((range) => describeRange('REMOVED', range, now)),
  ];
}

function allOf({ addresses, xpubs }: ProjectEntry): Set<string> {
  return new Set([...addresses, ...xpubs.flatMap((range) => range.addresses)]);
}

function describeList(what: string, addresses: readonly string[]): string[] {
  const more = addresses.length - MAX_LISTED;
  const listed = addresses.slice(0, MAX_LISTED).map((address) => `address ${what}: ${address}`);
  return more > 0 ? [...listed, `and ${more} more ${what}`] : listed;
}

function describeRange(what: string, { addresses, from, xpub }: XpubRange, others: ReadonlySet<string>): string[] {
  const indexes = addresses.flatMap((address, place) => (others.has(address) ? [] : [place]));
  const [first, last] = [indexes[0], indexes.at(-1)];
  if (first === undefined || last === undefined) return [];
  const key = `${xpub.slice(0, 12)}…${xpub.slice(-6)}`;
  return [
    `${indexes.length} from the account key ${key} ${what}: indexes ${from + first} to ${from + last}, ${addresses[first]} to ${addresses[last]}`,
  ];
}
