import { afterAll, expect, test, vi } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { someCases } from '../support/some-cases.ts';
import { INVARIANTS } from './invariants/all.ts';
import { type CodeBug, PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';
import { liveDay, shows } from './planted-day.ts';

// Files of one worker share modules. These must be loaded again with the planted mistakes, and once more without them by the next file.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock(import('../../src/core/chain/proof/prove-block.ts'));
  vi.doUnmock(import('../../src/core/domain/solidity.ts'));
  vi.doUnmock(import('../../src/core/webhooks/sign.ts'));
  vi.resetModules();
});

/** The mistake that is currently in the code. */
const code = vi.hoisted((): { bug: CodeBug } => ({ bug: {} }));

vi.mock(import('../../src/core/chain/proof/prove-block.ts'), async (original) => {
  const right = await original();
  return {
    ...right,
    examineBlock: (...asked) => {
      const block = right.examineBlock(...asked);
      if (block.isProven || code.bug.isHiddenUnverifiable !== true) return block;
      throw new AppError('BLOCK_UNVERIFIABLE', 'the transactions have another root', { retryable: true });
    },
  };
});

vi.mock(import('../../src/core/domain/solidity.ts'), async (original) => {
  const right = await original();
  return {
    ...right,
    solidHeight: (...asked) =>
      code.bug.isEveryBlockSolid === true ? (asked[0].at(-1)?.number ?? null) : right.solidHeight(...asked),
  };
});

vi.mock(import('../../src/core/webhooks/sign.ts'), async (original) => {
  const right = await original();
  return {
    ...right,
    signWebhook: (message) => (code.bug.signs ?? ((sign, given) => sign(given)))(right.signWebhook, message),
  };
});

test('there are 24 invariants, and for each a planted bug', () => {
  const numbers = Array.from({ length: 24 }, (_, index) => index + 1);
  expect(INVARIANTS.map(({ number }) => number)).toEqual(numbers);
  expect([...new Set(PLANTED_BUGS.map(({ number }) => number))]).toEqual(numbers);
});

const days = [...new Set(PLANTED_BUGS.map(({ day }) => day))].sort((one, other) => one - other);

test.each(
  someCases(
    days.map((day) => PLANTED_BUGS.filter((bug) => bug.day === day)).map((bugs) => [reported(bugs), bugs] as const),
    3,
  ),
)('%s', async (_, planted) => {
  code.bug = Object.assign({}, ...planted.map((bug) => bug.code));
  const violations = await liveDay(planted);
  expect(planted.filter((bug) => !violations.some((line) => shows(line, bug)))).toEqual([]);
});

function reported(bugs: readonly PlantedBug[]): string {
  return bugs.map(({ number, bug }) => `invariant ${number} finds that ${bug}`).join('; ');
}
