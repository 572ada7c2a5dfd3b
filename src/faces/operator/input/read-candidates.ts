import { type AccountHex, parseAddress, type TronAddress } from '@quittance/tron/address';
import { AppError, type FieldProblem } from '../../../core/domain/errors.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { detectSecret, quoteWhole } from './problems.ts';
import type { AddressEntry } from './readers.ts';

export type Candidate = { account: AccountHex; address: TronAddress };

/** The account of 20 zero bytes, T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb, whose key no one has. */
const BURN_ACCOUNT = '0'.repeat(40);

/** Separates the entries into addresses and problems. Messages repeat a refused text only if it looks like an address. */
export function readCandidates(entries: readonly AddressEntry[], contracts: readonly AccountHex[]) {
  const good: Candidate[] = [];
  const problems: FieldProblem[] = [];
  const spread = spotSpreadSecret(entries);
  if (spread !== null) return { good, problems: [spread] };
  const firstPlaces = new Map<AccountHex, string>();
  for (const { text, place } of entries) {
    const secret = detectSecret(text);
    if (secret !== null) {
      problems.push(secretProblem(place, secret));
      continue;
    }
    const shown = isShowable(text) ? ` (${quoteWhole(text)})` : '';
    const add = (message: Text) => problems.push({ subject: place, message: say`${place}${shown}: ${message}` });
    const parsed = parseAddress(text);
    if (parsed.kind === 'invalid') {
      add(foreignFormat(text) ?? tooShort(text) ?? parsed.reason);
      continue;
    }
    const { address, account } = parsed;
    const firstPlace = firstPlaces.get(account);
    firstPlaces.set(account, firstPlace ?? place);
    if (contracts.includes(account)) add('this is the USDT contract itself; use an address from your own wallet');
    else if (account === BURN_ACCOUNT) add('this is the burn address, and no one can move money from it');
    else if (firstPlace !== undefined) add(`this address is a duplicate of ${firstPlace}`);
    else good.push({ address, account });
  }
  return { good, problems };
}

/** `place` is where the secret was found: an argument, or a position in an input. */
function secretProblem(place: string, kind: string): FieldProblem {
  return { subject: place, message: say`${place}: ${{ secret: kind, place }}` };
}

/** If a text is far too short, its length explains the problem better than its first wrong character. */
function tooShort(text: string): string | null {
  if (text === '' || text.length >= 30 || /^0x/i.test(text)) return null;
  return `a TRON address has 34 characters, but this text has ${text.length}`;
}

/** Finds a seed phrase whose words were passed as separate entries, whether or not there are addresses among them. */
function spotSpreadSecret(entries: readonly AddressEntry[]): FieldProblem | null {
  const others = entries.filter(({ text }) => parseAddress(text).kind === 'invalid');
  if (others.some(({ text }) => detectSecret(text) !== null)) return null;
  const kind = detectSecret(others.map(({ text }) => text).join('\n'));
  if (kind === null) return null;
  return secretProblem(others.every(({ place }) => place.startsWith('argument')) ? 'arguments' : 'the input', kind);
}

/** With more than this, the first problems would scroll off the screen. */
const MAX_PROBLEMS = 50;

/** The error for refusing a whole command; nothing was changed. */
export function refusedAddresses(
  message: string,
  problems: readonly FieldProblem[],
  code: 'INVALID_ARGUMENT' | 'CONFLICT' | 'NOT_FOUND' = 'INVALID_ARGUMENT',
): AppError {
  const left = problems.length - MAX_PROBLEMS;
  const more = left > 0 ? [{ subject: '', message: `… and ${left} more` }] : [];
  return new AppError(code, message, { problems: [...problems.slice(0, MAX_PROBLEMS), ...more] });
}

/** Explains why a text was refused, if it's another kind of address or was copied incompletely. Returns `null` otherwise. */
function foreignFormat(text: string): Text | null {
  const [, extended] = /^([A-Za-z]pub)[1-9A-HJ-NP-Za-km-z]{80,}$/.exec(text) ?? [];
  if (extended !== undefined) {
    return say`this is an extended public key: to derive addresses from it, run "${{ command: 'address derive', input: { xpub: '…' } }}"`;
  }
  const stranger = /[^\p{ASCII}]/u.exec(text)?.[0];
  if (stranger !== undefined) {
    const code = (stranger.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `it contains the character U+${code}, which may be invisible or only look like a Latin letter; copy the address again`;
  }
  if (OLD_TRON.test(text)) {
    return 'this address has the format of an old TRON test network (27…); TRON addresses now start with T on every network';
  }
  const coin = FOREIGN_FORMATS.find(([pattern]) => pattern.test(text))?.[1];
  return coin === undefined ? null : `this looks like an address for ${coin}; a TRON address starts with T`;
}

const OLD_TRON = /^27[1-9A-HJ-NP-Za-km-z]{33}$/;

/** Doesn't match half of a private key in hex, which may be as long as an address. */
const BITCOIN = /^(?![0-9a-f]+$)[13][1-9A-HJ-NP-Za-km-z]{25,33}$/i;

const FOREIGN_FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(bc|tb|bcrt)1[0-9a-z]{10,}$/i, 'Bitcoin'],
  [/^(ltc|tltc)1[0-9a-z]{10,}$/i, 'Litecoin'],
  [BITCOIN, 'Bitcoin'],
  [/^(EQ|UQ|kQ|0Q)[\w-]{46}$/, 'TON'],
  [/^[1-9A-HJ-NP-Za-km-z]{43,44}$/, 'Solana'],
];

/**
 * Whether a message may repeat a text that was refused. Only texts in the form of an address may be shown, because anything else could be a
 * secret or a part of one. Solana addresses don't have their own form: they are 32 bytes, like a private key.
 */
function isShowable(text: string): boolean {
  return isMeantAsAddress(text) || SHOWABLE.some((form) => form.test(text));
}

const SHOWABLE: readonly RegExp[] = [
  /^(0x|41)[0-9a-f]{38,42}$/i,
  OLD_TRON,
  BITCOIN,
  /^(bc|tb|bcrt|ltc|tltc)1[0-9a-z]{10,60}$/,
  /^(EQ|UQ|kQ|0Q)[\w-]{46}$/,
];

/** Allows a few stray characters. */
const MAX_LENGTH = 44;

/** Whether a text is a TRON address or a misspelt one: `T` and about 33 more characters. */
function isMeantAsAddress(text: string): boolean {
  return text.length <= MAX_LENGTH && /^T[0-9A-Za-z]{29,37}$/.test(text.replace(/[^\p{ASCII}]/gu, ''));
}
