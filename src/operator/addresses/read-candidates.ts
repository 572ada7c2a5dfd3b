import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { type AccountHex, parseAddress, type TronAddress } from '../../tron/address.ts';
import { quoteWhole } from '../input/clip.ts';
import { secretProblem } from '../input/secret-message.ts';
import { spotSecret } from '../input/spot-secret.ts';
import type { AddressEntry } from './csv.ts';
import { foreignFormat, isShowable } from './refused-text.ts';

export type Candidate = { account: AccountHex; address: TronAddress };

/** The account of 20 zero bytes, T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb: nobody has its key. */
const BURN_ACCOUNT = '0'.repeat(40);

/** The addresses among the entries, and a problem for each other entry. A refused text is repeated only if it looks like an address. */
export function readCandidates(
  entries: readonly AddressEntry[],
  contracts: readonly AccountHex[],
): { good: Candidate[]; problems: FieldProblem[] } {
  const good: Candidate[] = [];
  const problems: FieldProblem[] = [];
  const spread = spotSpreadSecret(entries);
  if (spread !== null) return { good, problems: [spread] };
  const firstPlaces = new Map<AccountHex, string>();
  for (const { text, place } of entries) {
    const secret = spotSecret(text);
    if (secret !== null) {
      problems.push(secretProblem(place, secret, isArgument(place)));
      continue;
    }
    const shown = isShowable(text) ? ` (${quoteWhole(text)})` : '';
    const add = (message: string) => problems.push({ subject: place, message: `${place}${shown}: ${message}` });
    const parsed = parseAddress(text);
    if (parsed.kind === 'invalid') {
      add(foreignFormat(text) ?? tooShort(text) ?? parsed.reason);
      continue;
    }
    const { address, account } = parsed;
    const firstPlace = firstPlaces.get(account);
    firstPlaces.set(account, firstPlace ?? place);
    if (contracts.includes(account)) add('this is the USDT contract itself; give an address of your own wallet');
    else if (account === BURN_ACCOUNT) add('this is the burn address, whose money nobody can move');
    else if (firstPlace !== undefined) add(`this address was given before, as ${firstPlace}`);
    else good.push({ address, account });
  }
  return { good, problems };
}

function isArgument(place: string): boolean {
  return place.startsWith('argument');
}

/** If a text is far from the length of an address, its length says more than its first wrong character. */
function tooShort(text: string): string | null {
  if (text === '' || text.length >= 30 || /^0x/i.test(text)) return null;
  return `a TRON address has 34 characters, this one has ${text.length}`;
}

/** A seed phrase whose words are several entries, with or without addresses among them. */
function spotSpreadSecret(entries: readonly AddressEntry[]): FieldProblem | null {
  const others = entries.filter(({ text }) => parseAddress(text).kind === 'invalid');
  if (others.some(({ text }) => spotSecret(text) !== null)) return null;
  const kind = spotSecret(others.map(({ text }) => text).join('\n'));
  if (kind === null) return null;
  const isTyped = others.every(({ place }) => isArgument(place));
  return secretProblem(isTyped ? 'arguments' : 'what was given', kind, isTyped);
}

/** More would scroll the first ones away. */
const MAX_PROBLEMS = 50;

/** The refusal of a whole command: nothing was done. */
export function refusedAddresses(
  message: string,
  problems: readonly FieldProblem[],
  code: 'INVALID_ARGUMENT' | 'CONFLICT' | 'NOT_FOUND' = 'INVALID_ARGUMENT',
): AppError {
  const left = problems.length - MAX_PROBLEMS;
  const more = left > 0 ? [{ subject: '', message: `… and ${left} more` }] : [];
  return new AppError(code, message, { problems: [...problems.slice(0, MAX_PROBLEMS), ...more] });
}
