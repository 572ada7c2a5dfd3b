import { expect, test } from 'vitest';
import { recordTerminal } from '../../../test/support/terminal.ts';

test('--json prints the value of the result, in which nothing can rewrite what the terminal shows', () => {
  const data = { externalId: 'Zoë\u009b2J\u202e\u200b\u{e0001}\u001b 😀\n' };
  const { print, written } = recordTerminal({ json: true });
  print({ data, text: '' });
  const printed = written.stdout;
  expect(printed).toBe('{\n  "externalId": "Zoë\\u009b2J\\u202e\\u200b\\udb40\\udc01\\u001b 😀\\n"\n}\n');
  expect(JSON.parse(printed)).toEqual(data);
});
