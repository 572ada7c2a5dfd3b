import { say, type Text } from '../../domain/message.ts';

/** Describes a refused text that is an address of another kind or was copied badly; else `null`. */
export function foreignFormat(text: string): Text | null {
  const [, extended] = /^([A-Za-z]pub)[1-9A-HJ-NP-Za-km-z]{80,}$/.exec(text) ?? [];
  if (extended !== undefined) {
    return say`this is an extended public key: to derive addresses from it, run "${{ command: 'address derive', input: { xpub: '…' } }}"`;
  }
  const stranger = /[^\p{ASCII}]/u.exec(text)?.[0];
  if (stranger !== undefined) {
    const code = (stranger.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `it holds the character U+${code}, which may be invisible or only look like a Latin letter; copy the address again`;
  }
  if (OLD_TRON.test(text)) {
    return 'this is the form of an old TRON test network (27…); addresses of TRON now start with T on every network';
  }
  const coin = FOREIGN_FORMATS.find(([pattern]) => pattern.test(text))?.[1];
  return coin === undefined ? null : `this looks like an address of ${coin}; a TRON address starts with T`;
}

const OLD_TRON = /^27[1-9A-HJ-NP-Za-km-z]{33}$/;

/** Half of a private key in hex is no address, though it may have the length of one. */
const BITCOIN = /^(?![0-9a-f]+$)[13][1-9A-HJ-NP-Za-km-z]{25,33}$/i;

const FOREIGN_FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(bc|tb|bcrt)1[0-9a-z]{10,}$/i, 'Bitcoin'],
  [/^(ltc|tltc)1[0-9a-z]{10,}$/i, 'Litecoin'],
  [BITCOIN, 'Bitcoin'],
  [/^(EQ|UQ|kQ|0Q)[\w-]{46}$/, 'TON'],
  [/^[1-9A-HJ-NP-Za-km-z]{43,44}$/, 'Solana'],
];

/**
 * Whether a refused text may be repeated in a message: only what has the form of an address, for anything else may be a secret
 * or a part of one. The address of Solana has no form of its own: it is 32 bytes, as a private key is.
 */
export function isShowable(text: string): boolean {
  return isMeantAsAddress(text) || SHOWABLE.some((form) => form.test(text));
}

const SHOWABLE: readonly RegExp[] = [
  /^(0x|41)[0-9a-f]{38,42}$/i,
  OLD_TRON,
  BITCOIN,
  /^(bc|tb|bcrt|ltc|tltc)1[0-9a-z]{10,60}$/,
  /^(EQ|UQ|kQ|0Q)[\w-]{46}$/,
];

/** With a few characters that do not belong into it. */
const MAX_LENGTH = 44;

/** Whether a text is a TRON address or one with a mistake in it: `T` and about 33 more. */
function isMeantAsAddress(text: string): boolean {
  return text.length <= MAX_LENGTH && /^T[0-9A-Za-z]{29,37}$/.test(text.replace(/[^\p{ASCII}]/gu, ''));
}
