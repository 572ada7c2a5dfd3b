import { expect, onTestFinished, test, vi } from 'vitest';
import { createTerminal } from './terminal.ts';

test('--json prints the value of the result, in which nothing can rewrite what the terminal shows', () => {
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  const data = { externalId: 'Zoë\u009b2J\u202e\u200b\u{e0001}\u001b 😀\n' };
  createTerminal({ json: true }).print({ data, text: '' });
  const printed = String(write.mock.calls[0]?.[0]);
  expect(printed).toBe('{\n  "externalId": "Zoë\\u009b2J\\u202e\\u200b\\udb40\\udc01\\u001b 😀\\n"\n}\n');
  expect(JSON.parse(printed)).toEqual(data);
});
