import { PassThrough } from 'node:stream';
import type { AccountXpub } from '@quittance/tron/account-xpub';
import { expect, test } from 'vitest';
import { recordTerminal } from '../../../test/support/terminal.ts';
import { describeError } from '../terminal/describe-error.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { confirmFirstAddress } from './derive.ts';

const XPUB =
  'xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd' as AccountXpub;
const FIRST = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';
const SECOND = 'TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK';

function person(typed: string): { terminal: Terminal; shown: string[] } {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  stdin.end(typed);
  const shown: string[] = [];
  return { terminal: { ...recordTerminal({ stdin }), note: (text) => shown.push(text) }, shown };
}

test('a person confirms address #1 by its last characters, which the question does not show', async () => {
  const { terminal, shown } = person('hGWYdH\n');
  await confirmFirstAddress(terminal, XPUB, undefined);
  const text = shown.join('\n');
  expect(text).toContain('#1 TUEZSdKsoDHQMeZwihtdoBiN46zx......');
  expect(text).toContain(`#2 ${SECOND}`);
  expect(text).toContain('#3 TYJPRrdB5APNeRs4R7fYZSwW3TcrTKw2gx');
  expect(text).not.toContain('hGWYdH');
});

test('the whole address is as good', async () => {
  await confirmFirstAddress(person(` ${FIRST} \n`).terminal, XPUB, undefined);
});

test.each([
  ['other characters', 'y6NQZK\n', 'not the first address of this key'],
  ['an empty line', '\n', 'is not the first address of this key'],
  ['yes', 'yes\n', 'is not the first address of this key'],
  ['the end of the input', '', 'you entered nothing'],
])('%s confirm nothing', async (_what, typed, message) => {
  await expect(confirmFirstAddress(person(typed).terminal, XPUB, undefined)).rejects.toThrow(message);
});

test('--first spares the question', async () => {
  const { terminal, shown } = person('');
  await confirmFirstAddress(terminal, XPUB, FIRST);
  expect(shown).toEqual([]);
  await expect(confirmFirstAddress(terminal, XPUB, SECOND)).rejects.toThrow(`#2 ${SECOND}`);
});

test('where nobody can be asked, the message does not show what to confirm', async () => {
  const terminal = recordTerminal({ json: true });
  const error = await confirmFirstAddress(terminal, XPUB, undefined).catch((thrown: Error) => thrown.message);
  expect(error).toContain('--first');
  expect(error).not.toContain(FIRST);
});

test('--first that is no address is refused and not repeated', async () => {
  const { terminal } = person('');
  const secret = '4f'.repeat(32);
  const error = await confirmFirstAddress(terminal, XPUB, secret).catch(
    (thrown: Error) => describeError(thrown).message,
  );
  expect(error).toContain('--first');
  expect(error).not.toContain('4f4f');
});
