import type { AccountHex } from '@quittance/tron/address';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import type { Member } from '../proof/checkpoints.ts';
import type { ProvenHeader } from '../proof/prove-block.ts';
import { membersAfter } from './walk-producers.ts';

const accountOf = (index: number) => index.toString(16).padStart(40, '0') as AccountHex;
const keyOf = (index: number) => (index + 1000).toString(16).padStart(40, '0') as AccountHex;

/** Five, of whom four decide. The odd ones sign with another key than their own. */
const KNOWN: Member[] = [0, 1, 2, 3, 4].map((index) => ({
  account: accountOf(index),
  signer: index % 2 === 0 ? accountOf(index) : keyOf(index),
}));

/** Blocks of producers in turn, each signed with the key that is known, else with its own. */
function runOf(producers: readonly number[], keys: Record<number, AccountHex> = {}): ProvenHeader[] {
  return producers.map((index, place) => ({
    ...{ number: 100 + place, id: '', parentId: '', time: unixMs(0), txTrieRoot: '' },
    producer: accountOf(index),
    signer: keys[place] ?? KNOWN[index]?.signer ?? accountOf(index),
  }));
}

const sorted = (members: readonly Member[] | null) =>
  members && [...members].sort((left, right) => (left.account < right.account ? -1 : 1));
const ROUND = [0, 1, 2, 3, 4];

describe('who made the blocks of a run', () => {
  test('are those who were known, where nothing changed', () => {
    expect(sorted(membersAfter(KNOWN, runOf([...ROUND, ...ROUND])))).toEqual(KNOWN);
  });

  test('is not known before enough of them built on a whole round', () => {
    expect(membersAfter(KNOWN, runOf([...ROUND, 0, 1]))).toBeNull();
    expect(membersAfter(KNOWN, runOf([...ROUND, 0, 1, 2]))).toEqual(expect.any(Array));
    expect(membersAfter(KNOWN, runOf([...ROUND, 0, 1, 0, 1, 0, 1]))).toBeNull();
    expect(membersAfter(KNOWN, [])).toBeNull();
  });

  test('a newcomer takes the place of who made no block, with its own key', () => {
    const after = membersAfter(KNOWN, runOf([0, 1, 2, 3, 9, 0, 1, 2, 3, 9]));
    expect(sorted(after)).toEqual([...KNOWN.slice(0, 4), { account: accountOf(9), signer: accountOf(9) }]);
  });

  test('a newcomer that signs with another key has none that counts', () => {
    const after = membersAfter(KNOWN, runOf([0, 1, 2, 3, 9, 0, 1, 2, 3, 9], { 4: keyOf(9), 9: keyOf(9) }));
    expect(after).toContainEqual({ account: accountOf(9), signer: accountOf(9) });
  });

  test('a block on top that not enough of them built on makes nobody a producer', () => {
    expect(sorted(membersAfter(KNOWN, runOf([...ROUND, ...ROUND, 7, 8, 9])))).toEqual(KNOWN);
  });

  test('who missed every turn stays while there is a place', () => {
    expect(sorted(membersAfter(KNOWN, runOf([0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])))).toEqual(KNOWN);
  });

  test('a signature with a strange key changes no key, and one with its own does', () => {
    const strange = membersAfter(KNOWN, runOf([...ROUND, ...ROUND], { 1: keyOf(77), 6: keyOf(77) }));
    expect(sorted(strange)).toEqual(KNOWN);
    const back = membersAfter(KNOWN, runOf([...ROUND, ...ROUND], { 1: accountOf(1), 6: accountOf(1) }));
    expect(back).toContainEqual({ account: accountOf(1), signer: accountOf(1) });
  });

  test('a run across a vote leads to those who came, not to those who left', () => {
    const after = membersAfter(KNOWN, runOf([...ROUND, 0, 1, 2, 3, 9, 0, 1, 2, 3, 9]));
    expect(sorted(after)).toEqual([...KNOWN.slice(0, 4), { account: accountOf(9), signer: accountOf(9) }]);
  });

  test('whatever a run shows, they are as many as before, each once, with a key that was known or is its own', () => {
    const block = fc.record({ producer: fc.nat({ max: 8 }), key: fc.option(fc.nat({ max: 8 })) });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 40 }), (blocks) => {
        const keys = Object.fromEntries(
          blocks.flatMap(({ key }, place) => (key === null ? [] : [[place, keyOf(key)]])),
        );
        const run = runOf(
          blocks.map(({ producer }) => producer),
          keys,
        );
        const after = membersAfter(KNOWN, run);
        if (after === null) return;
        expect(new Set(after.map(({ account }) => account)).size).toBe(KNOWN.length);
        for (const member of after) {
          if (member.signer !== member.account) expect(KNOWN).toContainEqual(member);
        }
      }),
    );
  });
});
