import { expect, test } from 'vitest';
import { say } from '../../domain/message.ts';
import { renderText } from './words.ts';

test('a next step that has a screen is a link to it, and another is its command', () => {
  const text = say`make one with "${{ command: 'key create' }}", or "${{ command: 'backup' }}"`;
  expect(renderText(text).html).toBe(
    'make one with &quot;<a href="/settings/keys/new">New API key</a>&quot;, or &quot;<code>quittance backup</code>&quot;',
  );
});

test('a step that says more than its screen knows keeps its command', () => {
  const step = { command: 'deliveries replay', input: { endpoint: 'whe_1', status: 'missing' } };
  expect(renderText(say`${step}`).html).toBe(
    '<a href="/webhooks">Webhooks</a> (<code>quittance deliveries replay --endpoint whe_1 --status missing</code>)',
  );
});

test('what a step is about is part of the address, whatever it is', () => {
  const about = (command: string, subject: string) => renderText(say`${{ command, args: [subject] }}`).html;
  expect(about('key revoke', 'key_1')).toBe('<a href="/settings/keys/key_1/revoke">revoke key_1</a>');
  expect(about('explain', 'a&b="c"')).toBe('<a href="/find?q=a%26b%3D%22c%22">look at a&amp;b=&quot;c&quot;</a>');
  const resolve = { command: 'transfers resolve', args: ['trf_1'], input: { resolution: '…' } };
  expect(renderText(say`${resolve}`).html).toBe('<a href="/unmatched/trf_1">record it for trf_1</a>');
  expect(about('transfers show', 'all')).toBe('<code>quittance transfers show all</code>');
});
