import type { Config } from '../config.ts';
import type { Candidate } from '../payments/add-addresses.ts';
import { type AccountHex, parseAddress } from '../tron/address.ts';
import { USDT_CONTRACTS } from '../tron/usdt.ts';
import type { AddressEntry } from './address-csv.ts';
import { CliError, type Problem } from './cli-error.ts';
import { clip } from './clip.ts';
import { isSeedPhrase, spotSecret } from './spot-secret.ts';

/** The account of 20 zero bytes, T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb: nobody has its key. */
const BURN_ACCOUNT = '0'.repeat(40);

/** The addresses among the entries, and a problem for each of the others. Secrets are never repeated. */
export function readCandidates(
  entries: readonly AddressEntry[],
  contracts: readonly AccountHex[],
): { good: Candidate[]; problems: Problem[] } {
  const good: Candidate[] = [];
  const problems: Problem[] = [];
  if (isSeedPhrase(entries.map(({ text }) => text))) {
    const place = entries.every(isArgument) ? 'arguments' : 'what was given';
    return { good, problems: [secretProblem(place, 'a seed phrase')] };
  }
  const firstPlaces = new Map<AccountHex, string>();
  for (const { text, place } of entries) {
    const secret = spotSecret(text);
    if (secret !== null) {
      problems.push(secretProblem(place, secret));
      continue;
    }
    const add = (message: string) =>
      problems.push({ subject: place, message: `${place} (${shown(text)}): ${message}` });
    const parsed = parseAddress(text);
    if (parsed.kind === 'invalid') {
      add(foreignFormat(text) ?? parsed.reason);
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

function isArgument({ place }: AddressEntry): boolean {
  return place.startsWith('argument');
}

/** Long texts are left out: a private key with a letter too many is none by its form. */
function shown(text: string): string {
  return text.length <= 44 ? clip(text) : `${text.length} characters, not shown`;
}

/** What a text looks like that is an address of another kind, or `null`. */
function foreignFormat(text: string): string | null {
  const [, extended] = /^([A-Za-z]pub)[1-9A-HJ-NP-Za-km-z]{80,}$/.exec(text) ?? [];
  if (extended !== undefined) {
    return 'this is an extended public key: to derive addresses from it, run "quittance address derive --xpub …"';
  }
  const stranger = /[^\p{ASCII}]/u.exec(text)?.[0];
  if (stranger !== undefined) {
    const code = (stranger.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    return `it holds the character U+${code}, which may be invisible or only look like a Latin letter; copy the address again`;
  }
  if (/^27[1-9A-HJ-NP-Za-km-z]{33}$/.test(text)) {
    return 'this is the form of an old TRON test network (27…); addresses of TRON now start with T on every network';
  }
  const coin = FOREIGN_FORMATS.find(([pattern]) => pattern.test(text))?.[1];
  return coin === undefined ? null : `this looks like an address of ${coin}; a TRON address starts with T`;
}

const FOREIGN_FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(bc|tb|bcrt)1[0-9a-z]{10,}$/i, 'Bitcoin'],
  [/^(ltc|tltc)1[0-9a-z]{10,}$/i, 'Litecoin'],
  [/^[13][1-9A-HJ-NP-Za-km-z]{25,33}$/, 'Bitcoin'],
  [/^(EQ|UQ|kQ|0Q)[\w-]{46}$/, 'TON'],
  [/^[1-9A-HJ-NP-Za-km-z]{43,44}$/, 'Solana'],
];

/** `place` is where it stands: an argument, an option, or a place in an input. */
export function secretProblem(place: string, kind: string): Problem {
  const isTyped = place.startsWith('argument') || place.startsWith('--');
  const where = isTyped ? 'It may now stand in your shell history' : 'It now stands in that input';
  return {
    subject: place,
    message:
      `${place}: this looks like ${kind}. Quittance never needs one; never paste it anywhere. ` +
      `${where}: delete it there, and if it is real, move the funds or replace it.`,
  };
}

/** Every contract of USDT, and the devnet's fake one. */
export async function usdtContracts(config: Config): Promise<AccountHex[]> {
  const devnet = await import('../devnet/keys.ts');
  const configured = Object.values(config.networks).map(({ usdt }) => usdt);
  return [USDT_CONTRACTS.mainnet.account, USDT_CONTRACTS.nile.account, devnet.USDT, devnet.FAKE_USDT, ...configured];
}

/** More would scroll the first ones away. */
const MAX_PROBLEMS = 50;

/** The refusal of a whole command: nothing was done. */
export function refusedAddresses(
  message: string,
  problems: readonly Problem[],
  code: 'INVALID_ARGUMENT' | 'CONFLICT' | 'NOT_FOUND' = 'INVALID_ARGUMENT',
): CliError {
  const left = problems.length - MAX_PROBLEMS;
  const more = left > 0 ? [{ subject: '', message: `… and ${left} more` }] : [];
  return new CliError(code, message, { problems: [...problems.slice(0, MAX_PROBLEMS), ...more] });
}
