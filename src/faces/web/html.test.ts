import { expect, test } from 'vitest';
import { html, rawHtml } from './html.ts';

test('what is no HTML of ours stands as text or not at all, whatever it looks like', () => {
  expect(html`<p>${'<b>'}${rawHtml('<i>')}${[html`<u>`, html`${'&'}`]}</p>`.html).toBe('<p>&lt;b&gt;<i><u>&amp;</p>');
  const parsed = JSON.parse('{"html":"<script>"}') as never;
  expect(() => html`<p>${parsed}</p>`).toThrow(TypeError);
});
