import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contactProblem, readLink, supportLink } from './brand.ts';

describe('a support contact', () => {
  test.each([
    ['help@shop.example', 'mailto:help@shop.example'],
    ['Help.Desk+pay@xn--bcher-kva.example', 'mailto:Help.Desk+pay@xn--bcher-kva.example'],
    ['https://t.me/shop', 'https://t.me/shop'],
    ['https://shop.example/help?a=1&b=2#top', 'https://shop.example/help?a=1&b=2#top'],
    ['HTTPS://Shop.example', 'https://shop.example/'],
  ])('%s is a link', (contact, href) => {
    expect(supportLink(contact)).toEqual({ text: contact, href });
  });

  test.each([
    'Telegram: @shop',
    '+49 30 1234567',
    'http://shop.example/help',
    'http://127.0.0.1/help',
    'javascript:alert(1)',
    'JavaScript:alert(1)//@shop.example',
    'data:text/html,<script>alert(1)</script>',
    'https://user:word@shop.example',
    'https://shop.example/a b',
    'https:shop.example',
    '//shop.example',
    'help@shop',
    'help@shop.example?subject=x&body=y',
    'help@shop.example, other@shop.example',
    'mailto:help@shop.example',
    'a%0d%0ab@shop.example',
    '"><img src=x>@shop.example',
    'help@shop..example',
    '.help@shop.example',
    'help@-shop.example',
    '',
  ])('%j stays text', (contact) => {
    expect(supportLink(contact)).toEqual({ text: contact, href: null });
  });

  test('no text becomes a link of another kind, and none has what would end an attribute', () => {
    const start = fc.constantFrom(
      '',
      'https://',
      'https://a',
      'javascript:',
      'mailto:',
      'a@b.',
      'https:\\\\',
      ' https://a',
    );
    fc.assert(
      fc.property(start, fc.string({ unit: 'binary', maxLength: 40 }), (before, after) => {
        const { href } = supportLink(before + after);
        if (href === null) return;
        expect(href).toMatch(/^(https:\/\/[^/]|mailto:[^?&%#:]+@)/);
        expect(href).not.toMatch(/["<>\s]/);
      }),
      { numRuns: 3000 },
    );
  });

  test('has 1 to 200 characters on one line, none of which is hidden', () => {
    for (const contact of ['x', '😀'.repeat(200), 'پشتیبانی می‌خواهم', 'Telegram: @shop']) {
      expect(contactProblem(contact)).toBe(null);
    }
    expect(contactProblem('')).toContain('is empty');
    expect(contactProblem('😀'.repeat(201))).toContain('has 201 characters');
    for (const hidden of ['\n', '\0', '\u001b', '\u0085', '\u2028', '\u202e', '\u2067', '\ud800']) {
      expect(contactProblem(`a${hidden}b`)).toContain('in one line');
    }
  });
});

describe('a return URL', () => {
  test.each([
    ['https://shop.example/thanks', 'https://shop.example/thanks'],
    ['HTTPS://Shop.Example:8443/a?b=c#d', 'https://shop.example:8443/a?b=c#d'],
    ['https://bücher.example', 'https://xn--bcher-kva.example/'],
    ['https://shop.example/"><script>', 'https://shop.example/%22%3E%3Cscript%3E'],
    ['https://127.0.0.1/', 'https://127.0.0.1/'],
  ])('%s is read as browsers write it', (text, url) => {
    expect(readLink(text)).toEqual({ kind: 'ok', url });
  });

  test.each([
    'http://localhost:3000/done',
    'http://shop.localhost/',
    'http://127.1.2.3/',
    'http://[::1]:3000/',
    'http://2130706433/',
  ])('%s is on this machine', (text) => {
    expect(readLink(text)).toMatchObject({ kind: 'ok', url: expect.stringMatching(/^http:/) });
  });

  test.each([
    ['javascript:alert(1)', 'is not an https:// URL'],
    ['JAVASCRIPT://shop.example/%0aalert(1)', 'is not an https:// URL'],
    ['data:text/html,x', 'is not an https:// URL'],
    ['file:///etc/passwd', 'is not an https:// URL'],
    ['//shop.example', 'is not an https:// URL'],
    ['https:shop.example', 'is not an https:// URL'],
    ['https:///shop.example', 'is not an https:// URL'],
    ['https://', 'is not an https:// URL'],
    ['https://a:99999/', 'is not an https:// URL'],
    ['shop.example', 'is not an https:// URL'],
    ['', 'is not an https:// URL'],
    ['java\nscript:alert(1)', 'percent-encoded'],
    [' https://shop.example', 'percent-encoded'],
    ['https://shop.example/a\tb', 'percent-encoded'],
    ['https:\\\\shop.example', 'percent-encoded'],
    ['https://shop.example/\u202eb', 'percent-encoded'],
    ['https://shop.example/\0', 'percent-encoded'],
    ['https://user@shop.example', 'user name or password'],
    ['https://:word@shop.example', 'user name or password'],
    ['http://shop.example/', 'write https://'],
    ['http://localhost.shop.example/', 'write https://'],
    ['http://127.0.0.1.shop.example/', 'write https://'],
    ['http://10.0.0.1/', 'write https://'],
    ['http://0.0.0.0/', 'write https://'],
    [`https://shop.example/${'é'.repeat(340)}`, 'has 2061 characters'],
  ])('%j is refused, without being repeated', (text, problem) => {
    const read = readLink(text);
    expect(read).toEqual({ kind: 'refused', reason: expect.stringContaining(problem) });
  });
});
