import { parseAddress } from '@quittance/tron/address';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { POLICIES, type Policy } from '../../../core/domain/policy.ts';
import { unixMs } from '../../../core/domain/time.ts';
import { html } from '../../web/html.ts';
import { LANGUAGES } from '../words/languages.ts';
import { NO_ADDRESS, renderExample } from './page.ts';

const BRAND = { name: 'Heron', supportContact: null, returnUrl: null, accent: null };
const SHOWN = { brand: BRAND, logoUrl: null, network: 'mainnet', policy: 'tail', lifetimeMs: 1_800_000 } as const;
const now = unixMs(Date.UTC(2026, 8, 1, 12));
const inLanguage = (language: string) => ({ query: {}, headers: { 'accept-language': language } });

test('its address is as long as one, says what it is, and is none', () => {
  expect(NO_ADDRESS).toHaveLength(34);
  expect(NO_ADDRESS).toContain('Example');
  expect(parseAddress(NO_ADDRESS).kind).not.toBe('ok');
});

test.each(LANGUAGES)(
  'in $name it says in its first words that it is an example, and has no script, form, field or code',
  ({ code, direction }) => {
    const { html: text, nonce } = renderExample(inLanguage(code), { ...SHOWN, now });
    expect(text).toContain(`<html lang="${code}" dir="${direction}">`);
    expect(text).toContain(`<style nonce="${nonce}">`);
    expect(text.slice(text.indexOf('<main>'))).toMatch(
      /^<main>\s*<div class="notice" lang="en" dir="ltr"><strong>Example<\/strong>/,
    );
    expect(text).not.toMatch(/<script|<form|<input|<path stroke="#000"/);
  },
);

test('the policy decides whether digits are added', () => {
  const amount = (policy: Policy) => {
    const { html: text } = renderExample(inLanguage('en'), { ...SHOWN, policy, now });
    return /<span id="amount">([^<]+)<b>([^<]*)</.exec(text)?.slice(1);
  };
  expect(POLICIES.map(amount)).toEqual([
    ['25.00', '4217'],
    ['25.04', '21'],
    ['25.04', '2'],
    ['25.00', ''],
  ]);
});

test('whatever a merchant writes stands there as text, and links to nothing but the web and mail', () => {
  const text = fc.string({ unit: 'binary', maxLength: 60 });
  const odd = fc.oneof(
    text,
    fc.constantFrom('javascript:alert(1)', '"><script>', 'https://a" onclick="x', 'data:text/html,x'),
  );
  fc.assert(
    fc.property(odd, odd, odd, (name, supportContact, returnUrl) => {
      const brand = { name, supportContact, returnUrl, accent: null };
      const { html: page } = renderExample(inLanguage('en'), { ...SHOWN, brand, now });
      const main = page.slice(page.indexOf('<main>'));
      expect(main).not.toMatch(/<script|<img|onclick="|javascript:alert\(1\)"/);
      for (const [, href] of main.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
    }),
    { numRuns: 300 },
  );
});

test('a problem takes the place of all the rest', () => {
  const { html: text } = renderExample(inLanguage('en'), { problem: html`<p>why</p>` });
  expect(text).toContain('<strong>Example</strong><p>why</p></div>');
  expect(text).not.toContain(NO_ADDRESS.slice(4, 17));
});
