import { expect, test } from 'vitest';
import { AppError } from '../../core/domain/errors.ts';
import { say } from '../../core/domain/message.ts';
import { asWritten, formatHint, optionOf, writeText } from '../../faces/operator/command-words.ts';
import { fieldProblem } from '../../faces/operator/input/problems.ts';
import { refuseSecret } from '../../faces/operator/subjects/webhooks.ts';
import { describeError } from './describe-error.ts';

test('a field is named by its option', () => {
  expect(['limit', 'returnUrl', 'maxUnpaidPerMinute', 'isFresh', 'resolution'].map(optionOf)).toEqual([
    '--limit',
    '--return-url',
    '--max-unpaid-per-minute',
    '--fresh',
    '--as',
  ]);
});

test('a next step is the command that takes it, which can be copied', () => {
  const input = { network: 'nile', invoice: ['inv_1', 'inv_2'], isConfirmed: true, reason: '…' } as const;
  expect(formatHint({ command: 'chain repair', input })).toBe(
    'quittance chain repair --network nile --invoice inv_1 --invoice inv_2 --yes --reason "…"',
  );
  expect(formatHint({ command: 'address list', args: ['T…'] })).toBe('quittance address list T…');
});

test('a refusal and its problems name options and commands', () => {
  const problems = [fieldProblem('allowedIps', 'is odd')];
  const text = say`give ${{ field: 'xpub' }}, or see "${{ command: 'key list' }}"`;
  expect(describeError(new AppError('INVALID_ARGUMENT', text, { problems }))).toMatchObject({
    message: 'give --xpub, or see "quittance key list"',
    problems: [{ subject: '--allow-ip', message: '--allow-ip is odd' }],
  });
});

test('a field that holds a secret is refused with where it now stands', () => {
  const refuse = () => refuseSecret('description', 'a private key');
  expect(refuse).toThrow(/^description: this looks like a private key$/);
  try {
    refuse();
  } catch (error) {
    expect(describeError(error).message).toMatch(/^--description: this looks like a private key\. .*shell history/);
  }
});

test.each([
  ['argument 2', 'The secret may now be in your shell history'],
  ['line 3 of wallets.csv', 'The secret is now in that input'],
])('a secret in %s: %s', (place, where) => {
  expect(writeText(say`${{ secret: 'a seed phrase', place }}`)).toContain(where);
});

test('JSON has texts as they are written', () => {
  const data = { fix: say`see "${{ command: 'webhook test' }}"`, next: [say`${{ field: 'to' }}`, null] };
  expect(JSON.stringify(data, asWritten)).toBe('{"fix":"see \\"quittance webhook test\\"","next":["--to",null]}');
});
