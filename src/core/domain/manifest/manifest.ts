import { decodeId } from '../ids.ts';
import { parseAmount } from '../money.ts';
import { isNetwork, type Network } from '../network.ts';
import { POLICIES, type Policy } from '../policy.ts';

/** Addresses derived from an account key: those with the indexes `from` to `from + count - 1`, in order. */
export type XpubRange = { addresses: readonly string[]; count: number; from: number; xpub: string };

/** A project's signed settings. `addresses` contains the addresses that aren't in any range. */
export type ProjectEntry = {
  addresses: readonly string[];
  /** In USDT, for example `0.01`. */
  maxSurcharge: string;
  policy: Policy;
  xpubs: readonly XpubRange[];
};

export type ManifestNetworks = { readonly [Each in Network]?: { readonly [projectId: string]: ProjectEntry } };

/**
 * The addresses signed by the money's owner. `serial` increases with each manifest. `previous` is the previous head's digest, or `null` in
 * the first manifest. All members are sorted by name, as are projects and addresses.
 */
export type Manifest = {
  ledgerId: string;
  networks: ManifestNetworks;
  /** For example `2027-11-23T00:00:00.000Z`. */
  notAfter: string;
  previous: string | null;
  serial: number;
  v: 1;
};

const FORMS = ['ed25519', 'sshsig', 'sshsig-token'] as const;

/**
 * `form`: `ed25519` is a plain signature, `sshsig` is a signature made by `ssh-keygen -Y sign`, and `sshsig-token` is the same, but by a
 * key in a hardware token. `key` (32 bytes) and `value` (64 bytes, for a token followed by its flags and counter) are in base64.
 */
export type ManifestSignature = { form: (typeof FORMS)[number]; key: string; value: string };

export type SignedManifest = { manifest: Manifest; signatures: readonly ManifestSignature[] };

/** Proves that an address is signed, to anyone who knows a pinned key. */
export type AddressProof = {
  head: string;
  signatures: SignedManifest['signatures'];
  network: string;
  projectId: string;
  path: string[];
};

export type ReadManifest = ({ kind: 'ok' } & SignedManifest) | { kind: 'invalid'; reason: string };

/** A manifest with 100,000 addresses is about four megabytes long. */
export const MAX_MANIFEST_BYTES = 16 * 1024 * 1024;
/** This is twice the number of keys that can be pinned, so that a manifest can carry old and new signatures while keys are replaced. */
export const MAX_SIGNATURES = 8;

/** Returns the file's contents: a single line, with the same bytes for the same content. */
export function formatManifest({ manifest, signatures }: SignedManifest): string {
  return `${JSON.stringify({ manifest: inOrder(manifest), signatures: signatures.map(signatureInOrder) })}\n`;
}

/** Returns the addresses as text. Its digest is part of the signed head. */
export function formatNetworks(networks: ManifestNetworks): string {
  return JSON.stringify(networksInOrder(networks));
}

/**
 * Parses a file strictly: only one spelling is accepted, so that no other parser can understand it differently. The checksums of addresses
 * aren't checked.
 */
export function parseManifest(text: string): ReadManifest {
  if (text.length > MAX_MANIFEST_BYTES) return invalid(`it has more than ${MAX_MANIFEST_BYTES} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return invalid('it is not JSON: copy the whole file again');
  }
  const problem = problemOfFile(value);
  if (problem !== null) return invalid(problem);
  const signed = value as SignedManifest;
  if (formatManifest(signed) === text) return { kind: 'ok', ...signed };
  return invalid(
    'it is not in the exact form that Quittance writes (order, white space, or a repeated name): copy the original file again',
  );
}

/** Yields every address with its project in leaf order: by network, project and position. */
export function* vouchedAddresses(
  networks: ManifestNetworks,
): Generator<{ network: Network; projectId: string; address: string }> {
  const ordered = networksInOrder(networks);
  for (const [network, projects] of Object.entries(ordered) as [Network, Record<string, ProjectEntry>][]) {
    for (const [projectId, { addresses, xpubs }] of Object.entries(projects)) {
      for (const address of addresses) yield { network, projectId, address };
      for (const range of xpubs) for (const address of range.addresses) yield { network, projectId, address };
    }
  }
}

function inOrder({ ledgerId, networks, notAfter, previous, serial, v }: Manifest): Manifest {
  return { ledgerId, networks: networksInOrder(networks), notAfter, previous, serial, v };
}

function networksInOrder(networks: ManifestNetworks): ManifestNetworks {
  return sorted(networks, (projects) => sorted(projects ?? {}, entryInOrder));
}

function entryInOrder({ addresses, maxSurcharge, policy, xpubs }: ProjectEntry): ProjectEntry {
  const ranges = xpubs.map((range) => ({
    ...{ addresses: range.addresses, count: range.count, from: range.from, xpub: range.xpub },
  }));
  const keyOf = ({ xpub, from }: XpubRange) => `${xpub} ${String(from).padStart(10, '0')}`;
  ranges.sort((left, right) => compare(keyOf(left), keyOf(right)));
  return { addresses: [...addresses].sort(compare), maxSurcharge, policy, xpubs: ranges };
}

function signatureInOrder({ form, key, value }: ManifestSignature): ManifestSignature {
  return { form, key, value };
}

function sorted<Value, Out>(members: { readonly [name: string]: Value }, order: (value: Value) => Out) {
  const names = Object.keys(members).sort(compare);
  return Object.fromEntries(names.map((name) => [name, order(members[name] as Value)]));
}

function compare(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

function invalid(reason: string): { kind: 'invalid'; reason: string } {
  return { kind: 'invalid', reason };
}

const TEXTS = {
  ledgerId: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  notAfter: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  digest: /^[0-9a-f]{64}$/,
  address: /^T[1-9A-HJ-NP-Za-km-z]{33}$/,
  xpub: /^xpub[1-9A-HJ-NP-Za-km-z]{100,120}$/,
  key: /^[A-Za-z0-9+/]{43}=$/,
  value: /^[A-Za-z0-9+/]{86}==$/,
  tokenValue: /^[A-Za-z0-9+/]{92}$/,
};
/** The number of non-hardened indexes in BIP-32. */
const MAX_INDEX = 2 ** 31;

function problemOfFile(value: unknown): string | null {
  const { manifest, signatures } = members(value);
  const strange =
    strangerIn('the file', value, ['manifest', 'signatures']) ??
    strangerIn('manifest', manifest, ['ledgerId', 'networks', 'notAfter', 'previous', 'serial', 'v']);
  if (strange !== null) return strange;
  const { ledgerId, networks, notAfter, previous, serial, v } = members(manifest);
  if (v !== 1)
    return `manifest.v is ${JSON.stringify(v)?.slice(0, 20)}: this release reads only version 1; update Quittance`;
  if (!isText(ledgerId, TEXTS.ledgerId)) return 'manifest.ledgerId is not a UUID';
  if (!isText(notAfter, TEXTS.notAfter) || Number.isNaN(Date.parse(notAfter))) {
    return 'manifest.notAfter is not a time such as 2027-11-23T00:00:00.000Z';
  }
  if (previous !== null && !isText(previous, TEXTS.digest)) {
    return 'manifest.previous is neither null nor a SHA-256 in hexadecimal';
  }
  if (!isCount(serial, 1, Number.MAX_SAFE_INTEGER)) return 'manifest.serial is not a whole number of at least 1';
  if ((serial === 1) !== (previous === null)) return 'manifest.previous must be null in serial 1, and only in serial 1';
  return problemOfNetworks(networks) ?? problemOfSignatures(signatures);
}

function problemOfNetworks(networks: unknown): string | null {
  if (!isObject(networks)) return 'manifest.networks is not an object';
  const networkOf = new Map<string, string>();
  for (const [network, projects] of Object.entries(networks)) {
    if (!isNetwork(network))
      return `manifest.networks names ${JSON.stringify(network.slice(0, 40))}, which is not a network`;
    if (!isObject(projects)) return `the ${network} projects are not an object`;
    const seen = new Set<string>();
    for (const [projectId, entry] of Object.entries(projects)) {
      if (decodeId('prj', projectId) === null)
        return `${network} names ${JSON.stringify(projectId.slice(0, 40))}, which is not a project (prj_…)`;
      const other = networkOf.get(projectId);
      if (other !== undefined) return `${projectId} is listed under ${other} and ${network}: a project has one network`;
      networkOf.set(projectId, network);
      const problem = problemOfEntry(entry, seen);
      if (problem !== null) return `${projectId}: ${problem}`;
    }
  }
  return null;
}

/** `seen` contains the network's addresses so far, because each address belongs to one project and is listed only once. */
function problemOfEntry(entry: unknown, seen: Set<string>): string | null {
  const strange = strangerIn('the entry', entry, ['addresses', 'maxSurcharge', 'policy', 'xpubs']);
  if (strange !== null) return strange;
  const { addresses, maxSurcharge, policy, xpubs } = members(entry);
  if (!POLICIES.some((each) => each === policy)) return `the policy must be one of ${POLICIES.join(', ')}`;
  if (typeof maxSurcharge !== 'string' || parseAmount(maxSurcharge).kind !== 'ok') {
    return 'maxSurcharge is not an amount in USDT such as "0.01"';
  }
  if (!Array.isArray(xpubs)) return 'xpubs is not a list';
  for (const range of xpubs) {
    const problem = problemOfRange(range, seen);
    if (problem !== null) return problem;
  }
  return problemOfAddresses(addresses, seen);
}

function problemOfRange(range: unknown, seen: Set<string>): string | null {
  const strange = strangerIn('a range of xpubs', range, ['addresses', 'count', 'from', 'xpub']);
  if (strange !== null) return strange;
  const { addresses, count, from, xpub } = members(range);
  if (!isText(xpub, TEXTS.xpub)) return 'a range has no account key (xpub6…)';
  if (!isCount(from, 0, MAX_INDEX - 1) || !isCount(count, 1, MAX_INDEX - from)) {
    return 'from and count of a range are not indexes of an account';
  }
  if (!Array.isArray(addresses) || addresses.length !== count) return `a range of ${count} must list as many addresses`;
  return problemOfAddresses(addresses, seen);
}

function problemOfAddresses(addresses: unknown, seen: Set<string>): string | null {
  if (!Array.isArray(addresses)) return 'addresses is not a list';
  for (const address of addresses) {
    if (!isText(address, TEXTS.address)) return `${JSON.stringify(address)?.slice(0, 50)} is not an address (T…)`;
    if (seen.has(address)) return `${address} appears twice in one network: list it once`;
    seen.add(address);
  }
  return null;
}

function problemOfSignatures(signatures: unknown): string | null {
  if (!Array.isArray(signatures) || signatures.length > MAX_SIGNATURES) {
    return `signatures is not a list of at most ${MAX_SIGNATURES}`;
  }
  for (const signature of signatures) {
    const strange = strangerIn('a signature', signature, ['form', 'key', 'value']);
    if (strange !== null) return strange;
    const { form, key, value } = members(signature);
    if (!FORMS.some((known) => known === form)) return `a signature's form must be one of ${FORMS.join(', ')}`;
    if (!isText(key, TEXTS.key)) return "a signature's key is not 32 bytes in base64";
    const [pattern, bytes] = form === 'sshsig-token' ? ([TEXTS.tokenValue, 69] as const) : ([TEXTS.value, 64] as const);
    if (!isText(value, pattern)) return `a signature's value is not ${bytes} bytes in base64`;
  }
  return null;
}

/** Describes the first unknown or missing member, and where it is. */
function strangerIn(where: string, value: unknown, names: readonly string[]): string | null {
  if (!isObject(value)) return `${where} is not an object`;
  const unknown = Object.keys(value).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    return `${where} has the unknown member ${JSON.stringify(unknown.slice(0, 40))}: remove it, or update Quittance`;
  }
  const missing = names.find((name) => !Object.hasOwn(value, name));
  return missing === undefined ? null : `${where} lacks the member "${missing}"`;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function members(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

function isText(value: unknown, form: RegExp): value is string {
  return typeof value === 'string' && form.test(value);
}

function isCount(value: unknown, minimum: number, maximum: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum;
}
