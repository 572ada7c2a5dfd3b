import { ed25519 } from '@noble/curves/ed25519.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { base64 } from '@scure/base';
import type { ManifestSignature } from './manifest.ts';

/** This namespace separates these signatures from all others made with the same key; pass it to `ssh-keygen -Y sign -n`. */
export const SIGNATURE_NAMESPACE = 'quittance-manifest';

/** A valid head must be signed by at least `needed` of `keys` (32 bytes each, in base64). */
export type PinnedKeys = { needed: number; keys: readonly string[] };

/** Signs a head with an Ed25519 private key (32 bytes). */
export function signHead(head: string, privateKey: Uint8Array): ManifestSignature {
  const key = base64.encode(ed25519.getPublicKey(privateKey));
  return { form: 'ed25519', key, value: base64.encode(ed25519.sign(bareMessage(head), privateKey)) };
}

/** Returns the pinned keys that signed the head, each only once. */
export function signersOf(head: string, signatures: readonly ManifestSignature[], keys: readonly string[]): string[] {
  return keys.filter((key) => signatures.some((signature) => signature.key === key && fits(head, signature)));
}

/** Returns why too few pinned keys signed a head, or `null` if enough did. */
export function lackOfSignatures(
  head: string,
  signatures: readonly ManifestSignature[],
  { needed, keys }: PinnedKeys,
): string | null {
  const count = signersOf(head, signatures, keys).length;
  if (count >= needed) return null;
  const others = signatures.filter(({ key }) => !keys.includes(key)).length;
  const more = others === 0 ? '' : `; ${others} of its signatures are from keys that are not pinned`;
  return `${count} of the ${keys.length} pinned keys signed this version, but ${needed} must sign${more}`;
}

/** The check follows RFC 8032 strictly, unlike some lenient implementations, so that a signature never fits a second text. */
function fits(head: string, { form, key, value }: ManifestSignature): boolean {
  try {
    const bytes = base64.decode(value);
    if (form === 'sshsig-token' && !wasTouched(bytes)) return false;
    return ed25519.verify(bytes.subarray(0, 64), messageOf(head, form, bytes), base64.decode(key), { zip215: false });
  } catch {
    return false;
  }
}

function wasTouched(value: Uint8Array): boolean {
  return ((value[64] ?? 0) & WAS_TOUCHED) !== 0;
}

function messageOf(head: string, form: ManifestSignature['form'], value: Uint8Array): Uint8Array {
  if (form === 'ed25519') return bareMessage(head);
  if (form === 'sshsig') return sshMessage(head);
  // A hardware token signs the OpenSSH message with a prefix (PROTOCOL.u2f of OpenSSH): the application, whether the token was touched, and
  // a counter.
  return concatBytes(sha256(utf8ToBytes(TOKEN_APPLICATION)), value.subarray(64), sha256(sshMessage(head)));
}

function bareMessage(head: string): Uint8Array {
  return utf8ToBytes(`${SIGNATURE_NAMESPACE}\n${head}`);
}

/** Returns the message that `ssh-keygen -Y sign` signs for a file (PROTOCOL.sshsig of OpenSSH) with its default hash. */
function sshMessage(head: string): Uint8Array {
  const parts = [utf8ToBytes(SIGNATURE_NAMESPACE), new Uint8Array(), utf8ToBytes('sha512'), sha512(utf8ToBytes(head))];
  return concatBytes(utf8ToBytes('SSHSIG'), ...parts.map(sshString));
}

function sshString(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  return concatBytes(Uint8Array.of(length >>> 24, length >>> 16, length >>> 8, length), bytes);
}

type Outcome<Value> = ({ kind: 'ok' } & Value) | { kind: 'invalid'; reason: string };

const SSH_TYPE = 'ssh-ed25519';
/** The type of a key in a hardware token, as created by `ssh-keygen -t ed25519-sk`. */
const TOKEN_TYPE = 'sk-ssh-ed25519@openssh.com';
const TOKEN_APPLICATION = 'ssh:';
/** The flag that shows that the token was touched. */
const WAS_TOUCHED = 1;
const ARMOUR = /^-----BEGIN SSH SIGNATURE-----([A-Za-z0-9+/=\s]{100,4000})-----END SSH SIGNATURE-----\s*$/;

/** Reads a signature file made by `ssh-keygen -Y sign`. Doesn't check whether the signature fits a head. */
export function parseSshSignature(text: string): Outcome<{ signature: ManifestSignature }> {
  const body = ARMOUR.exec(text)?.[1];
  if (body === undefined) return invalid('it is not a signature written by "ssh-keygen -Y sign"');
  const read = readerOf(body.replace(/\s/g, ''));
  if (read === null) return invalid('it is damaged: its base64 is not valid');
  if (read.bytes(6) !== 'SSHSIG' || read.number() !== 1) return invalid('it is not an SSH signature of version 1');
  const key = readerOf(base64.encode(read.raw()));
  const type = key?.text();
  if (type !== SSH_TYPE && type !== TOKEN_TYPE) return invalid(refusedType(type ?? ''));
  const publicKey = key?.raw() ?? new Uint8Array();
  if (type === TOKEN_TYPE && key?.text() !== TOKEN_APPLICATION) return invalid(OTHER_APPLICATION);
  const namespace = read.text();
  if (namespace !== SIGNATURE_NAMESPACE) {
    return invalid(`it was made for "${namespace.slice(0, 40)}": sign with -n ${SIGNATURE_NAMESPACE}`);
  }
  read.raw();
  const hash = read.text();
  if (hash !== 'sha512') return invalid(`it uses the hash ${hash.slice(0, 20)}: leave out "-O hashalg"`);
  const inner = readerOf(base64.encode(read.raw()));
  const innerType = inner?.text();
  const value = inner?.raw() ?? new Uint8Array();
  // The token's flags and its signature counter.
  const ofToken = type === TOKEN_TYPE ? (inner?.rest(5) ?? new Uint8Array()) : new Uint8Array();
  const isWhole = value.length === 64 && publicKey.length === 32 && ofToken.length === (type === TOKEN_TYPE ? 5 : 0);
  if (innerType !== type || !isWhole || inner?.isAtEnd() !== true || !read.isAtEnd()) {
    return invalid('it is damaged, or has an unknown format');
  }
  if (type === TOKEN_TYPE && !wasTouched(concatBytes(value, ofToken))) {
    return invalid('the hardware token signed without a touch: create the key without "-O no-touch-required"');
  }
  const form = type === TOKEN_TYPE ? 'sshsig-token' : 'sshsig';
  return {
    kind: 'ok',
    signature: { form, key: base64.encode(publicKey), value: base64.encode(concatBytes(value, ofToken)) },
  };
}

const MAX_KEYS = 4;

/**
 * Reads `KEY`, or `2 of KEY KEY KEY`. A key is written as `quittance manifest key` shows it (32 bytes in base64), or as in the file
 * `id_ed25519.pub` after `ssh-ed25519`. Keys are separated by spaces or commas.
 */
export function parsePinnedKeys(text: string): Outcome<{ pinned: PinnedKeys }> {
  const [, count, rest = ''] = /^\s*(?:(\d)\s+of\s+)?(.*?)\s*$/is.exec(text) ?? [];
  const words = rest.split(/[\s,]+/).filter((word) => word !== '' && word !== SSH_TYPE && word !== TOKEN_TYPE);
  const keys = words.map(parsePublicKey);
  for (const key of keys) if (key.kind === 'invalid') return key;
  const known = keys.flatMap((key) => (key.kind === 'ok' ? [key.key] : []));
  if (known.length < 1 || known.length > MAX_KEYS) return invalid(`must name 1 to ${MAX_KEYS} keys`);
  if (new Set(known).size < known.length) return invalid('names one key twice: remove one');
  if (count === undefined && known.length > 1) {
    return invalid(`must say how many of the ${known.length} keys must sign, as in "1 of KEY KEY"`);
  }
  const needed = Number(count ?? 1);
  if (needed < 1 || needed > known.length) return invalid(`requires ${needed} signatures from ${known.length} keys`);
  return { kind: 'ok', pinned: { needed, keys: known } };
}

/** Formats keys in the form that `parsePinnedKeys` reads: `2 of KEY KEY`. */
export function formatPinnedKeys({ needed, keys }: PinnedKeys): string {
  return `${needed} of ${keys.join(' ')}`;
}

function parsePublicKey(word: string): Outcome<{ key: string }> {
  if (/^[A-Za-z0-9+/]{43}=$/.test(word)) return { kind: 'ok', key: word };
  const read = word.startsWith('AAAA') || /^(sk-)?ssh-/.test(word) ? readerOf(word) : null;
  const type = read?.text() ?? word;
  if (read === null || (type !== SSH_TYPE && type !== TOKEN_TYPE)) return invalid(refusedType(type));
  const key = read.raw();
  if (type === TOKEN_TYPE && read.text() !== TOKEN_APPLICATION) return invalid(OTHER_APPLICATION);
  if (key.length !== 32 || !read.isAtEnd())
    return invalid('has a damaged SSH key: copy the line from the .pub file again');
  return { kind: 'ok', key: base64.encode(key) };
}

const OTHER_APPLICATION = 'has a hardware token key that was created with "-O application": create one without it';

function refusedType(type: string): string {
  if (/^[a-z0-9@.-]{4,60}$/.test(type)) return `has a key of type ${type}: only Ed25519 keys are accepted`;
  return 'has a word that is not a public key: use the key that "quittance manifest key" showed, or the second word of an id_ed25519.pub file';
}

function invalid(reason: string): { kind: 'invalid'; reason: string } {
  return { kind: 'invalid', reason };
}

/** Returns a reader of consecutive fields in SSH's wire format, or `null` if the text isn't base64. Fields beyond the end are empty. */
function readerOf(text: string) {
  let bytes: Uint8Array;
  try {
    bytes = base64.decode(text);
  } catch {
    return null;
  }
  let at = 0;
  const take = (length: number) => {
    const taken = bytes.subarray(at, at + length);
    at += length;
    return taken;
  };
  const number = () => take(4).reduce((value, byte) => value * 256 + byte, 0);
  const raw = () => take(number());
  const latin = (taken: Uint8Array) => String.fromCharCode(...taken.subarray(0, 200));
  return {
    number,
    raw,
    bytes: (length: number) => latin(take(length)),
    rest: take,
    text: () => latin(raw()),
    isAtEnd: () => at === bytes.length,
  };
}
