import { AppError } from '../../domain/errors.ts';
import { say } from '../../domain/message.ts';
import { type AccountXpub, type DerivedAddress, deriveAddresses } from '../../tron/account-xpub.ts';
import { parseAddress } from '../../tron/address.ts';

/** The operator must read this many last characters of #1 in the wallet; they are not shown here. */
export const ASKED_LENGTH = 6;

/** Addresses to compare with a wallet. `addresses`: the first three of an account key, without the end of #1. */
export type FirstAddresses = {
  addresses: string[];
  /** Refuses a text that is neither #1 nor its end. A person reads it in the wallet. Error: `INVALID_ARGUMENT`. */
  refuseOther(typed: string): void;
  /** Refuses an address other than #1. Error: `INVALID_ARGUMENT`. */
  refuseOtherAddress(given: string): void;
};

export function firstAddresses(xpub: AccountXpub): FirstAddresses {
  const derived = deriveAddresses(xpub, 0, 3);
  const [own] = derived;
  if (own === undefined) throw new Error('no address was derived');
  return {
    addresses: derived.map(shown),
    refuseOther: (typed) => {
      const isOwn = typed === own.address || typed === own.address.slice(-ASKED_LENGTH);
      if (!isOwn) throw mismatch('what you typed', derived);
    },
    refuseOtherAddress: (given) => {
      const address = given.trim();
      if (address === own.address) return;
      const parsed = parseAddress(address);
      if (parsed.kind === 'ok') throw mismatch(address, derived);
      // It may be anything that was in a clipboard, so it is not repeated.
      throw new AppError('INVALID_ARGUMENT', say`${{ field: 'first' }}: ${parsed.reason}; no address was added`);
    },
  };
}

function mismatch(given: string, derived: readonly DerivedAddress[]): AppError {
  return new AppError(
    'INVALID_ARGUMENT',
    `no address was added: your wallet's first address (${given}) is not the one that this key gives (${derived.map(shown).join(', ')}). ` +
      "The key may be of another account, another wallet or another coin: export the one of m/44'/195'/0' for TRON, or paste addresses instead",
  );
}

/** Hides the end of #1 also after a wrong try, so that the person reads it in the wallet the next time, and not on the screen. */
function shown({ address, index }: DerivedAddress): string {
  const text = index === 0 ? address.slice(0, -ASKED_LENGTH) + '.'.repeat(ASKED_LENGTH) : address;
  return `#${index + 1} ${text}`;
}
