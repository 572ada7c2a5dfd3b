import { invalidArgument } from '../../core/domain/errors.ts';
import { type LocalOperation, NO_MANIFEST } from '../../faces/operator/operation.ts';
import {
  ASKED_LENGTH,
  type Derived,
  deriveAddresses,
  findDerivationKey,
  firstAddresses,
  limitDerivation,
} from '../../faces/operator/subjects/address-derivation.ts';
import { otherPolicyNote } from '../../faces/operator/subjects/addresses.ts';
import type { Typed } from '../terminal/add-operations.ts';
import { askPerson, hasPerson } from '../terminal/ask-person.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';
import { now, withDatabase } from '../terminal/with-database.ts';

type Input = Parameters<typeof deriveAddresses.read>[0];

/** Adds the next addresses from an account key. The operator must first confirm that a new key belongs to the wallet. */
export async function printDerived(terminal: Terminal, _operation: LocalOperation, typed: Typed): Promise<Result> {
  const input = typed.input as Input;
  const actor = cliActor(terminal, typed.by);
  const { autoLimit } = input;
  const limit =
    input.count === undefined && autoLimit !== undefined ? limitDerivation.read({ ...input, autoLimit }, now()) : null;
  const wanted = limit ?? deriveAddresses.read(input, now());
  const key = await withDatabase(terminal, (deps) => findDerivationKey.run(deps, actor, wanted));
  if (!key.isStored && limit !== null) throw invalidArgument`this key is new: also set --count, as in --count 1`;
  // The database is closed while the person looks at the wallet, because another command or the service may need its data directory.
  if (!key.isStored || input.first !== undefined) await confirmFirstAddress(terminal, key.xpub, input.first);
  if (!('count' in wanted)) {
    return presentLimit(
      await withDatabase(terminal, (deps) => limitDerivation.run(deps, actor, { ...wanted, ...key })),
    );
  }
  const outcome = await withDatabase(terminal, (deps) =>
    deriveAddresses.run({ ...deps, addressGuard: NO_MANIFEST }, actor, { ...wanted, ...key }),
  );
  if (outcome.kind === 'proposed') throw new Error('a command on the server never waits for confirmation');
  const { view, projectPolicy, autoDeriveLimit } = outcome;
  const { count } = wanted;
  const next = [
    view.added.length < count &&
      `warning: only ${view.added.length} of ${count} addresses were added; run the command again to add the rest`,
    ...otherPolicyNote(view, view.policy, projectPolicy),
    ...(key.isStored ? [] : [WALLET_ADVICE, autoNote(autoDeriveLimit)]),
    'your wallet may show only the first few addresses, so its balance may look too low: set it to show every address you added',
  ];
  return { data: view, text: linesOf(view).join('\n'), next };
}

function presentLimit(data: Awaited<ReturnType<typeof limitDerivation.run>>): Result {
  const { autoDerived, autoDeriveLimit } = data;
  const text = `Quittance may derive up to ${autoDeriveLimit} addresses from this key automatically; it has derived ${autoDerived} so far`;
  const next = "set your wallet's gap limit to at least this number; otherwise its balance may look too low";
  return { data, text, next: autoDeriveLimit > 0 && next };
}

/** A longer list would scroll the added addresses off the screen. */
const MAX_SHOWN = 10;

function linesOf({ projectId: own, added, skipped }: Extract<Derived, { kind: 'added' }>['view']): string[] {
  const more = skipped.length - MAX_SHOWN;
  return [
    ...skipped.slice(0, MAX_SHOWN).map(({ address, derivationIndex, projectId }) => {
      const whose = projectId === own ? 'this project' : `another project (${projectId})`;
      return `#${derivationIndex + 1} ${address} was skipped: it is already in ${whose}`;
    }),
    ...(more > 0 ? [`… and ${more} more were skipped, up to #${(skipped.at(-1)?.derivationIndex ?? 0) + 1}`] : []),
    ...added.map(({ address, derivationIndex }) => `added #${derivationIndex + 1} ${address}`),
  ];
}

function autoNote(limit: number): string {
  return limit === 0
    ? 'Quittance does not derive addresses from this key automatically; to change this, use --auto-limit'
    : `when payable amounts run low, Quittance adds up to ${limit} more automatically: raise your wallet's gap limit to match, or turn this off with --auto-limit 0`;
}

/** A wallet that counts accounts instead of addresses has the same first address, so #1 alone can't detect such a wallet. */
const WALLET_ADVICE =
  'also compare #2 and #3 with your wallet: some wallets count accounts instead of addresses, so only #1 matches. If #2 or #3 differs, retire the derived addresses and paste addresses from your wallet instead';

/**
 * Verifies that address #1 of an account key is in the operator's wallet: with `--first`, or else by asking for its last 6 characters,
 * which aren't shown. Throws `INVALID_ARGUMENT` if it isn't, or if there is no one to ask.
 */
export async function confirmFirstAddress(
  terminal: Terminal,
  xpub: Parameters<typeof firstAddresses>[0],
  first: string | undefined,
): Promise<void> {
  const { addresses, refuseOther, refuseOtherAddress } = firstAddresses(xpub);
  if (first !== undefined) return refuseOtherAddress(first);
  if (!hasPerson(terminal))
    throw invalidArgument`no address was added, because this key is new and must be confirmed. Open the account in your wallet and enter its first address with --first T…, or run the command in a terminal`;
  terminal.note(
    [
      'Open this account in your wallet. Its first receiving addresses should be:',
      ...addresses.map((each) => `  ${each}`),
      'Quittance cannot move money, and it cannot check who owns this key. If these addresses are not in your wallet, payments to them are lost.',
      'Compare all three: some wallets count accounts instead of addresses, so only #1 matches.',
    ].join('\n'),
  );
  const typed = await askPerson(terminal, `The last ${ASKED_LENGTH} characters of #1, as your wallet shows them: `);
  if (typed === null) throw invalidArgument`no address was added, because you entered nothing`;
  refuseOther(typed);
}
