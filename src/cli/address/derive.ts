import { AppError } from '../../domain/errors.ts';
import type { Policy } from '../../domain/policy.ts';
import { deriveAddresses, findDerivationKey, limitDerivation } from '../../operator/addresses/derive-addresses.ts';
import { readAutoLimit, readCount, readXpub } from '../../operator/addresses/read-derivation.ts';
import type { AutoLimitView, DerivedAddressesView } from '../../operator/addresses/views.ts';
import { NO_MANIFEST } from '../../operator/operation.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { confirmFirstAddress, WALLET_ADVICE } from './confirm.ts';
import { otherPolicyNote } from './other-policy-note.ts';

type Options = {
  [Name in 'project' | 'xpub' | 'count' | 'autoLimit' | 'first' | 'by']?: string | undefined;
} & { policy?: Policy | undefined; fresh?: true | undefined };

/** Adds the next addresses of an account key; a key that is new must first be confirmed to be the wallet's. */
export async function printDerived(terminal: Terminal, options: Options): Promise<Result> {
  const actor = cliActor(terminal, options.by);
  const autoLimit = options.autoLimit === undefined ? null : readAutoLimit(options.autoLimit);
  const count = options.count === undefined && autoLimit !== null ? null : readCount(options.count);
  const xpub = options.xpub === undefined ? null : readXpub(options.xpub);
  const key = await withDatabase(terminal, (deps) =>
    findDerivationKey(deps, actor, { projectId: options.project, xpub }),
  );
  if (!key.isStored && count === null) {
    throw new AppError('INVALID_ARGUMENT', 'this key is new: give --count as well, 1 for example');
  }
  // The database is closed while a person looks into a wallet: another command or the service may need its directory.
  if (!key.isStored || options.first !== undefined) await confirmFirstAddress(terminal, key.xpub, options.first);
  if (count === null) {
    const limit = { key, autoLimit: autoLimit ?? 0 };
    return presentLimit(await withDatabase(terminal, (deps) => limitDerivation(deps, actor, limit)));
  }
  const wanted = { key, count, autoLimit, policy: options.policy, isFresh: options.fresh === true, seen: null };
  const outcome = await withDatabase(terminal, (deps) =>
    deriveAddresses({ ...deps, addressGuard: NO_MANIFEST }, actor, wanted),
  );
  if (outcome.kind === 'proposed') throw new Error('what is derived by a command on the machine never waits');
  const { view, projectPolicy, autoDeriveLimit } = outcome;
  const next = [
    ...(view.added.length < count
      ? [`warning: only ${view.added.length} of ${count} were added; run the command again for the others`]
      : []),
    ...otherPolicyNote(view, view.policy, projectPolicy),
    ...(key.isStored ? [] : [WALLET_ADVICE, autoNote(autoDeriveLimit)]),
    'a wallet may show only the first few: have it show as many as you added, or its balance will look too small',
  ];
  return { data: view, text: linesOf(view).join('\n'), next: next.join('\n') };
}

function presentLimit(data: AutoLimitView): Result {
  const { autoDerived, autoDeriveLimit } = data;
  const text = `the key may yield ${autoDeriveLimit} addresses by itself, and has yielded ${autoDerived}`;
  const next = 'have your wallet look as many addresses ahead, or its balance may look too small';
  return { data, text, ...(autoDeriveLimit > 0 ? { next } : {}) };
}

/** More would scroll away what was added. */
const MAX_SHOWN = 10;

function linesOf({ projectId: own, added, skipped }: DerivedAddressesView): string[] {
  const more = skipped.length - MAX_SHOWN;
  return [
    ...skipped.slice(0, MAX_SHOWN).map(({ address, derivationIndex, projectId }) => {
      const whose = projectId === own ? 'this project' : `another project (${projectId})`;
      return `#${derivationIndex + 1} ${address} is passed over: it is already in ${whose}`;
    }),
    ...(more > 0 ? [`… and ${more} more are passed over, up to #${(skipped.at(-1)?.derivationIndex ?? 0) + 1}`] : []),
    ...added.map(({ address, derivationIndex }) => `added #${derivationIndex + 1} ${address}`),
  ];
}

function autoNote(limit: number): string {
  return limit === 0
    ? 'the key yields addresses only when you ask for them (--auto-limit)'
    : `when payable amounts get scarce, up to ${limit} more are added by themselves: have your wallet look as far, or say --auto-limit 0`;
}
