import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { type AccountXpub, type DerivedAddress, deriveAddresses } from '../../tron/account-xpub.ts';
import { parseAddress } from '../../tron/address.ts';
import { CliError } from '../cli-error.ts';
import type { Terminal } from '../terminal.ts';

/** Wallets that number accounts share only the first address, so that one alone does not tell them from others. */
export const WALLET_ADVICE =
  'compare #2 and #3 with your wallet too: some wallets count accounts instead of addresses, and then only #1 is the same. If they differ, retire those you derived and paste addresses instead';

/** What the operator must read in the wallet; it is not shown here. */
const ASKED_LENGTH = 6;

/**
 * Makes sure that address #1 of an account key is in the operator's wallet: by `--first`, else by asking for its last 6
 * characters, which are not shown. Throws `INVALID_ARGUMENT` if it is not, or nobody can be asked.
 */
export async function confirmFirstAddress(
  terminal: Terminal,
  xpub: AccountXpub,
  first: string | undefined,
): Promise<void> {
  const derived = deriveAddresses(xpub, 0, 3);
  const [own] = derived;
  if (own === undefined) throw new Error('no address was derived');
  if (first !== undefined) return compareFirst(first.trim(), own, derived);
  if (!('isTTY' in terminal.stdin) || terminal.stdin.isTTY !== true) {
    throw new CliError(
      'INVALID_ARGUMENT',
      'no address was added: this key is new here, so it must be confirmed. Open the account in your wallet and give its first address with --first T…, or run the command in a terminal',
    );
  }
  terminal.note(
    [
      'Open this account in your wallet. Its first receiving addresses should be:',
      ...derived.map((each) => `  ${shown(each)}`),
      'Quittance cannot move money, and cannot see whose key this is. If these are not in your wallet, payments to them are lost to you.',
      'Compare all three: some wallets count accounts instead of addresses, and then only #1 is the same.',
    ].join('\n'),
  );
  const typed = await ask(terminal, `The last ${ASKED_LENGTH} characters of #1, as your wallet shows them: `);
  if (typed !== own.address && typed !== own.address.slice(-ASKED_LENGTH)) throw mismatch('what you typed', derived);
}

function compareFirst(first: string, own: DerivedAddress, derived: readonly DerivedAddress[]): void {
  if (first === own.address) return;
  const parsed = parseAddress(first);
  if (parsed.kind === 'invalid') {
    // It may be anything that was in a clipboard, so it is not repeated.
    throw new CliError('INVALID_ARGUMENT', `--first: ${parsed.reason}; no address was added`);
  }
  throw mismatch(first, derived);
}

function mismatch(given: string, derived: readonly DerivedAddress[]): CliError {
  return new CliError(
    'INVALID_ARGUMENT',
    `no address was added: your wallet's first address (${given}) is not the one that this key gives (${derived.map(shown).join(', ')}). ` +
      "The key may be of another account, another wallet or another coin: export the one of m/44'/195'/0' for TRON, or paste addresses instead",
  );
}

/** The end of #1 is left out also where it did not fit, so that the next try looks into the wallet and not at the screen. */
function shown({ address, index }: DerivedAddress): string {
  const text = index === 0 ? address.slice(0, -ASKED_LENGTH) + '.'.repeat(ASKED_LENGTH) : address;
  return `#${index + 1} ${text}`;
}

/** Also ends where the input does, or with Ctrl-C. */
async function ask(terminal: Terminal, question: string): Promise<string> {
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr });
  const ended = once(lines, 'close').then(() => null);
  try {
    const typed = await Promise.race([lines.question(question).catch(unlessAborted), ended]);
    if (typed === null) throw new CliError('INVALID_ARGUMENT', 'no address was added: nothing was typed');
    return typed.trim();
  } finally {
    lines.close();
  }
}

/** On a terminal, Ctrl-C and Ctrl-D reject the question. */
function unlessAborted(error: Error): null {
  if (error.name === 'AbortError') return null;
  throw error;
}
