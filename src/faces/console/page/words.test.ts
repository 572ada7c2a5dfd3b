import { expect, test } from 'vitest';
import { say } from '../../../core/domain/message.ts';
import { renderText } from './words.ts';

test('a next step that has a screen is a link to it, and another is its command with where it is done', () => {
  const text = say`make one with "${{ command: 'key create' }}", or "${{ command: 'migrate' }}"`;
  expect(renderText(text).html).toBe(
    'make one with &quot;<a href="/settings/keys/new">New API key</a>&quot;, or &quot;<code>quittance migrate</code> <small>(on the machine that runs Quittance)</small>&quot;',
  );
});

test.each([
  [{ command: 'deliveries replay', input: { endpoint: 'whe_1', status: 'missing' } }, '/webhooks/whe_1/replay'],
  [{ command: 'deliveries list', input: { endpoint: 'whe_1' } }, '/webhooks/whe_1'],
  [{ command: 'webhook test', args: ['whe_1'] }, '/webhooks/whe_1'],
  [{ command: 'webhook test' }, '/webhooks'],
  [
    { command: 'project update', args: ['prj_1'], input: { support: 'help@…' } },
    '/settings/project/look?project=prj_1',
  ],
  [
    { command: 'project update', args: ['prj_1'], input: { policy: 'tail-4' } },
    '/settings/project/rules?project=prj_1',
  ],
  [{ command: 'address derive', input: { projectId: 'prj_1' } }, '/addresses/derive?project=prj_1'],
  [{ command: 'address activate', args: ['TX'] }, '/addresses/TX/activate'],
  [{ command: 'chain acknowledge', input: { alarm: 'contract-event' } }, '/chain'],
  [{ command: 'reconcile', input: { address: 'TX' } }, '/addresses'],
])('a step that the console can do is a link, and no command: %j', (step, url) => {
  const { html } = renderText(say`${step}`);
  expect(html).toContain(`<a href="${url}">`);
  expect(html).not.toContain('quittance ');
});

test('what a step is about is part of the address, whatever it is', () => {
  const about = (command: string, subject: string) => renderText(say`${{ command, args: [subject] }}`).html;
  expect(about('key revoke', 'key_1')).toBe('<a href="/settings/keys/key_1/revoke">revoke key_1</a>');
  expect(about('explain', 'a&b="c"')).toBe('<a href="/find?q=a%26b%3D%22c%22">show a&amp;b=&quot;c&quot;</a>');
  const resolve = { command: 'transfers resolve', args: ['trf_1'], input: { resolution: '…' } };
  expect(renderText(say`${resolve}`).html).toBe('<a href="/unmatched/trf_1">resolve trf_1</a>');
  expect(about('transfers show', 'all')).toBe('<a href="/unmatched">Unmatched transfers</a>');
});
