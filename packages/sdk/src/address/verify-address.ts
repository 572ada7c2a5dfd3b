import { digest, findSubtle, toHex } from '../webhooks/web-crypto.ts';

/** The `addressProof` of a `payment`, and the content of `/address-proof.json` of a checkout link. */
export type AddressProof = {
  head: string;
  signatures: readonly { form: string; key: string; value: string }[];
  network: string;
  projectId: string;
  path: readonly string[];
};

/**
 * Facts that you know from a source other than the server. `keys` are the keys in the form in which the owner of the addresses published
 * them: base64 or OpenSSH.
 */
export type Pinned = {
  keys: readonly string[];
  /** How many of the keys must have signed. Default: 1. */
  needed?: number;
  /** The id of your project (`prj_…`), because the same owner may also sign addresses of other projects. */
  projectId: string;
  network?: 'mainnet' | 'nile' | 'devnet';
  /** The newest serial that you have seen. Older manifests are rejected. */
  minSerial?: number;
};

/** `notAfter`: the manifest is valid until this time. You decide whether to accept a manifest after that time. */
export type AddressCheck =
  | { vouched: true; serial: number; notAfter: string }
  | { vouched: false; reason: 'NO_PROOF' | 'OTHER_PROJECT' | 'TOO_FEW_SIGNATURES' | 'OTHER_ADDRESS' | 'OLD_MANIFEST' };

const NAMESPACE = 'quittance-manifest';
/** A tree of this height would have more leaves than there are addresses. */
const MAX_STEPS = 64;

/**
 * Checks whether enough of the pinned keys have signed the address of a payment or checkout link. It sends no requests, so a compromised
 * server can't influence the result.
 */
export async function verifyAddress(
  payment: { address: string; addressProof?: AddressProof | undefined },
  { keys, needed = 1, projectId, network = 'mainnet', minSerial = 1 }: Pinned,
): Promise<AddressCheck> {
  const { address, addressProof: proof } = payment;
  if (proof === undefined) return refused('NO_PROOF');
  if (proof.projectId !== projectId || proof.network !== network) return refused('OTHER_PROJECT');
  const { head, signatures, path } = proof;
  const pinned = new Set(keys.map((key) => btoa(String.fromCharCode(...rawKey(key)))));
  let signed = 0;
  for (const key of pinned) {
    const own = signatures.filter((signature) => signature.key === key);
    for (const { form, value } of own.slice(0, 2)) {
      if (!(await isSigned(head, form, rawKey(key), decode(value)))) continue;
      signed += 1;
      break;
    }
  }
  if (signed < Math.max(1, needed)) return refused('TOO_FEW_SIGNATURES');
  const { v, root, serial, notAfter } = JSON.parse(head);
  if (v !== 1 || path.length > MAX_STEPS) return refused('OTHER_ADDRESS');
  let hash = await sha256(`address ${network} ${projectId} ${address}`);
  for (const step of path) {
    const other = step.slice(1);
    hash = await sha256(step.startsWith('L') ? `node ${other} ${hash}` : `node ${hash} ${other}`);
  }
  if (hash !== root) return refused('OTHER_ADDRESS');
  return serial < minSerial ? refused('OLD_MANIFEST') : { vouched: true, serial, notAfter };
}

function refused(reason: (AddressCheck & { vouched: false })['reason']): AddressCheck {
  return { vouched: false, reason };
}

async function isSigned(head: string, form: string, key: Bytes, signature: Bytes): Promise<boolean> {
  // A hardware token signs "ssh:", its flags (1 means that someone touched it), a counter and a digest.
  const isToken = form === 'sshsig-token' && ((signature[64] ?? 0) & 1) === 1;
  const ssh = form === 'ed25519' ? bytesOf(`${NAMESPACE}\n${head}`) : await sshMessage(head);
  const sha = (bytes: Bytes) => digest('SHA-256', bytes);
  const message = isToken ? join(await sha(bytesOf('ssh:')), signature.slice(64), await sha(ssh)) : ssh;
  const subtle = await findSubtle();
  try {
    const imported = await subtle.importKey('raw', key, { name: 'Ed25519' }, false, ['verify']);
    return await subtle.verify({ name: 'Ed25519' }, imported, signature.slice(0, 64), message);
  } catch (error) {
    // An invalid key can't have signed anything. But a runtime that doesn't support Ed25519 must not look like a forgery.
    if ((error as Error).name === 'NotSupportedError') throw error;
    return false;
  }
}

/** Returns the bytes that `ssh-keygen -Y sign` signs. */
async function sshMessage(head: string): Promise<Bytes> {
  const parts = [bytesOf(NAMESPACE), bytesOf(''), bytesOf('sha512'), await digest('SHA-512', bytesOf(head))];
  return join(bytesOf('SSHSIG'), ...parts.flatMap((part) => [[0, 0, 0, part.length], part]));
}

async function sha256(text: string): Promise<string> {
  return toHex(await digest('SHA-256', bytesOf(text)));
}

type Bytes = Uint8Array<ArrayBuffer>;

/** In an OpenSSH key, the last 32 bytes are the key itself. If the key is in a hardware token (74 bytes), "ssh:" follows. */
function rawKey(text: string): Bytes {
  const bytes = decode(text);
  return bytes.length === 74 ? bytes.slice(34, 66) : bytes.slice(-32);
}

function decode(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function bytesOf(text: string): Bytes {
  return new TextEncoder().encode(text);
}

function join(...parts: readonly ArrayLike<number>[]): Bytes {
  return Uint8Array.from(parts.flatMap((part) => Array.from(part)));
}
