import { AppError } from '../../domain/errors.ts';
import { ASKED_LENGTH, firstAddresses } from '../../operator/subjects/address-derivation.ts';
import { askPerson, hasPerson } from '../terminal/ask-person.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Wallets that number accounts share only the first address, so that one alone does not tell them from others. */
export const WALLET_ADVICE =
  'compare #2 and #3 with your wallet too: some wallets count accounts instead of addresses, and then only #1 is the same. If they differ, retire those you derived and paste addresses instead';

/**
 * Makes sure that address #1 of an account key is in the operator's wallet: by `--first`, else by asking for its last 6
 * characters, which are not shown. Throws `INVALID_ARGUMENT` if it is not, or nobody can be asked.
 */
export async function confirmFirstAddress(
  terminal: Terminal,
  xpub: Parameters<typeof firstAddresses>[0],
  first: string | undefined,
): Promise<void> {
  const { addresses, refuseOther, refuseOtherAddress } = firstAddresses(xpub);
  if (first !== undefined) return refuseOtherAddress(first);
  if (!hasPerson(terminal)) {
    throw new AppError(
      'INVALID_ARGUMENT',
      'no address was added: this key is new here, so it must be confirmed. Open the account in your wallet and give its first address with --first T…, or run the command in a terminal',
    );
  }
  terminal.note(
    [
      'Open this account in your wallet. Its first receiving addresses should be:',
      ...addresses.map((each) => `  ${each}`),
      'Quittance cannot move money, and cannot see whose key this is. If these are not in your wallet, payments to them are lost to you.',
      'Compare all three: some wallets count accounts instead of addresses, and then only #1 is the same.',
    ].join('\n'),
  );
  const typed = await askPerson(terminal, `The last ${ASKED_LENGTH} characters of #1, as your wallet shows them: `);
  if (typed === null) throw new AppError('INVALID_ARGUMENT', 'no address was added: nothing was typed');
  refuseOther(typed);
}
