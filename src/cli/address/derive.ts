import { AppError } from '../../domain/errors.ts';
import { writeText } from '../../operator/command-words.ts';
import { type LocalOperation, NO_MANIFEST } from '../../operator/operation.ts';
import {
  type Derived,
  deriveAddresses,
  findDerivationKey,
  limitDerivation,
} from '../../operator/subjects/address-derivation.ts';
import { otherPolicyNote } from '../../operator/subjects/addresses.ts';
import type { Typed } from '../terminal/add-operations.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { now, withDatabase } from '../terminal/with-database.ts';
import { confirmFirstAddress, WALLET_ADVICE } from './confirm.ts';

type Input = Parameters<typeof deriveAddresses.read>[0];

/** Adds the next addresses of an account key; a key that is new must first be confirmed to be the wallet's. */
export async function printDerived(terminal: Terminal, _operation: LocalOperation, typed: Typed): Promise<Result> {
  const input = typed.input as Input;
  const actor = cliActor(terminal, typed.by);
  const { autoLimit } = input;
  const limit =
    input.count === undefined && autoLimit !== undefined ? limitDerivation.read({ ...input, autoLimit }, now()) : null;
  const wanted = limit ?? deriveAddresses.read(input, now());
  const key = await withDatabase(terminal, (deps) => findDerivationKey.run(deps, actor, wanted));
  if (!key.isStored && limit !== null) {
    throw new AppError('INVALID_ARGUMENT', 'this key is new: give --count as well, 1 for example');
  }
  // The database is closed while a person looks into a wallet: another command or the service may need its directory.
  if (!key.isStored || input.first !== undefined) await confirmFirstAddress(terminal, key.xpub, input.first);
  if (!('count' in wanted)) {
    return presentLimit(
      await withDatabase(terminal, (deps) => limitDerivation.run(deps, actor, { ...wanted, ...key })),
    );
  }
  const outcome = await withDatabase(terminal, (deps) =>
    deriveAddresses.run({ ...deps, addressGuard: NO_MANIFEST }, actor, { ...wanted, ...key }),
  );
  if (outcome.kind === 'proposed') throw new Error('what is derived by a command on the machine never waits');
  const { view, projectPolicy, autoDeriveLimit } = outcome;
  const { count } = wanted;
  const next = [
    ...(view.added.length < count
      ? [`warning: only ${view.added.length} of ${count} were added; run the command again for the others`]
      : []),
    ...otherPolicyNote(view, view.policy, projectPolicy).map(writeText),
    ...(key.isStored ? [] : [WALLET_ADVICE, autoNote(autoDeriveLimit)]),
    'a wallet may show only the first few: have it show as many as you added, or its balance will look too small',
  ];
  return { data: view, text: linesOf(view).join('\n'), next: next.join('\n') };
}

function presentLimit(data: Awaited<ReturnType<typeof limitDerivation.run>>): Result {
  const { autoDerived, autoDeriveLimit } = data;
  const text = `the key may yield ${autoDeriveLimit} addresses by itself, and has yielded ${autoDerived}`;
  const next = 'have your wallet look as many addresses ahead, or its balance may look too small';
  return { data, text, ...(autoDeriveLimit > 0 ? { next } : {}) };
}

/** More would scroll away what was added. */
const MAX_SHOWN = 10;

function linesOf({ projectId: own, added, skipped }: Extract<Derived, { kind: 'added' }>['view']): string[] {
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
