import type { Block } from '../chain/block.ts';
import type { Ledger, LedgerView } from '../chain/ledger.ts';
import { firstSchedule, type Witness, witnessesOf } from '../chain/schedule.ts';
import { attackerSigner } from '../evm/keys.ts';
import type { StateReader } from '../evm/state.ts';
import { hasFault, historyBlocksOf, isResealing, lagBlocksOf, type SettledFault } from './faults.ts';
import { lieAbout, lieAboutHeader } from './lies.ts';
import { type Resealed, resealChain } from './reseal.ts';

/** The chain as a node with these faults shows it at one endpoint; without faults, as it is. */
export function viewWith(
  ledger: Ledger,
  kind: 'full' | 'solid',
  faults: readonly SettledFault[],
  remembered: Resealed,
): LedgerView {
  const view = ledger.view(hasFault(faults, 'solid-ahead') ? 'full' : kind, lagBlocksOf(faults));
  if (faults.length === 0) return view;
  const lie = (block: Block) => faults.reduce(lieAbout, block);
  const lieOf = (number: number) => {
    const block = view.block(number);
    return block === null ? null : lie(block);
  };
  const sealed = faults.some((each) => isResealing(each.kind))
    ? resealChain(faults, { trueBlock: view.block, lie, remembered })
    : lieOf;
  const oldest = ledger.head().header.number - historyBlocksOf(faults);
  const block = (number: number): Block | null => {
    const shown = number > 0 && number < oldest ? null : sealed(number);
    return shown === null ? null : faults.reduce(lieAboutHeader, shown);
  };
  return {
    headNumber: view.headNumber,
    state: () => bentState(faults, view.state()),
    produced: view.produced,
    block,
    transaction(id) {
      const found = view.transaction(id);
      const shown = found === null ? null : block(found.block.header.number);
      const transaction = shown?.transactions.find((each) => each.id === id);
      return shown === null || transaction === undefined ? null : { block: shown, transaction };
    },
  };
}

/** The producers as a node with these faults shows them. */
export function witnessesWith(ledger: Ledger, faults: readonly SettledFault[]): readonly Witness[] {
  const replayed = faults.find(({ kind }) => kind === 'replayed-producers');
  if (replayed === undefined) return ledger.witnesses();
  if (replayed.producers !== 'attacker') return witnessesOf(firstSchedule(ledger.schedule().genesisCount));
  return ledger.witnesses().map((each) => ({ ...each, signer: attackerSigner(each.index) }));
}

function bentState(faults: readonly SettledFault[], state: StateReader): StateReader {
  if (hasFault(faults, 'wrong-balance')) return oneMicroLess(state);
  if (!hasFault(faults, 'wrong-flags')) return state;
  return { get: (key) => (/\/(?:blacklist\/|deprecated$)/.test(key) ? 1n - state.get(key) : state.get(key)) };
}

function oneMicroLess(state: StateReader): StateReader {
  return {
    get(key) {
      const value = state.get(key);
      return key.includes('/balance/') && value > 0n ? value - 1n : value;
    },
  };
}
