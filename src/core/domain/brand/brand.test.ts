import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { contactProblem, fillReturnUrl, readLink, readReturnUrl, showsInvoiceId, supportLink } from './brand.ts';

describe('a support contact', () => {
  test.each([
    ['help@shop.example', 'mailto:help@shop.example'],
    ['help@mail.shop.example', 'mailto:help@mail.shop.example'],
    ['help@x.example', 'mailto:help@x.example'],
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
    expect(contactProblem('')).toBe('is empty: use an e-mail address, a link or a name (1 to 200 characters)');
    expect(contactProblem('😀'.repeat(201))).toBe('has 201 characters: use at most 200');
    for (const blank of [' ', '\u200b', '\ufeff', '\u2800']) {
      expect(contactProblem(blank)).toContain('contains no readable text');
    }
    expect(contactProblem(`e${'\u0301'.repeat(5)}`)).toContain('more than four combining marks');
    for (const hidden of ['\n', '\0', '\u001b', '\u0085', '\u2028', '\u202e', '\u2067', '\ud800']) {
      expect(contactProblem(`a${hidden}b`)).toBe(
        'contains a line break, a control character or a character that reverses the text direction: write plain text on one line',
      );
    }
  });
});

describe('a return URL', () => {
  test('has at most 2048 characters, as browsers write it', () => {
    const url = `https://shop.example/${'x'.repeat(2048 - 'https://shop.example/'.length)}`;
    expect(readLink(url)).toEqual({ kind: 'ok', url });
    expect(readLink(`${url}x`)).toEqual({ kind: 'refused', reason: 'has 2049 characters: use at most 2048' });
  });

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
    'http://127.12.34.56/',
    'http://[::1]:3000/',
    'http://2130706433/',
  ])('%s is on this machine', (text) => {
    expect(readLink(text)).toMatchObject({ kind: 'ok', url: expect.stringMatching(/^http:/) });
  });

  const NO_URL = 'is not an https:// URL: use a URL such as https://shop.example.com/thanks';
  const NO_PLAIN = 'contains a space, a backslash or a control character: percent-encode it, or remove it';
  const WITH_USER = 'has a user name or password before the "@", and every payer would see it: remove it';
  const INSECURE = 'starts with http://, so others can read and change the traffic: use https://';
  test.each([
    ['javascript:alert(1)', NO_URL],
    ['x https://shop.example', NO_PLAIN],
    ['xhttps://shop.example', NO_URL],
    ['httpss://shop.example', NO_URL],
    ['https:////shop.example', NO_URL],
    ['http://xlocalhost/', INSECURE],
    ['http://127.0.0.1x/', INSECURE],
    ['http://localhosts/', INSECURE],
    ['http://[::2]/', INSECURE],
    ['JAVASCRIPT://shop.example/%0aalert(1)', NO_URL],
    ['data:text/html,x', NO_URL],
    ['file:///etc/passwd', NO_URL],
    ['//shop.example', NO_URL],
    ['https:shop.example', NO_URL],
    ['https:///shop.example', NO_URL],
    ['https://', NO_URL],
    ['https://a:99999/', NO_URL],
    ['shop.example', NO_URL],
    ['', NO_URL],
    ['java\nscript:alert(1)', NO_PLAIN],
    [' https://shop.example', NO_PLAIN],
    ['https://shop.example/a\tb', NO_PLAIN],
    ['https:\\\\shop.example', NO_PLAIN],
    ['https://shop.example/\u202eb', NO_PLAIN],
    ['https://shop.example/\0', NO_PLAIN],
    ['https://user@shop.example', WITH_USER],
    ['https://:word@shop.example', WITH_USER],
    ['http://shop.example/', INSECURE],
    ['http://localhost.shop.example/', INSECURE],
    ['http://127.0.0.1.shop.example/', INSECURE],
    ['http://10.0.0.1/', INSECURE],
    ['http://0.0.0.0/', INSECURE],
    [`https://shop.example/${'é'.repeat(340)}`, 'has 2061 characters: use at most 2048'],
  ])('%j is refused, without being repeated', (text, problem) => {
    const read = readLink(text);
    expect(read).toEqual({ kind: 'refused', reason: problem });
  });
});

describe('the place of a return URL', () => {
  const ID = 'inv_01h455vb4pex5vsknk084sn02q';

  test.each([
    ['https://shop.example/o/{invoiceId}', `https://shop.example/o/${ID}`],
    ['HTTPS://Shop.example/o?a={invoiceId}&b={invoiceId}#{invoiceId}', `https://shop.example/o?a=${ID}&b=${ID}#${ID}`],
    ['https://shop.example/thanks', 'https://shop.example/thanks'],
  ])('%s is kept as it is, and filled in for each invoice', (text, filled) => {
    const read = readReturnUrl(text);
    const url = read.kind === 'ok' ? read.url : '';
    expect(fillReturnUrl(url, ID)).toBe(filled);
    expect(readLink(filled)).toEqual({ kind: 'ok', url: filled });
    expect(readReturnUrl(url)).toEqual(read);
    expect(showsInvoiceId(url)).toBe(text.includes('{'));
  });

  const OTHER = 'contains a brace: the only placeholder is {invoiceId}';
  test.each([
    [
      'https://shop.example/{externalId}',
      'contains {externalId}, which is private to your shop but which every payer would see: use {invoiceId} instead',
    ],
    [
      'https://shop.example/{invoiceId}/{externalId}',
      'contains {externalId}, which is private to your shop but which every payer would see: use {invoiceId} instead',
    ],
    ['https://shop.example/{amount}', OTHER],
    ['https://shop.example/{INVOICEID}', OTHER],
    ['https://shop.example/{{invoiceId}}', OTHER],
    ['https://shop.example/?a={', OTHER],
    [
      'https://{invoiceId}.shop.example/',
      'contains {invoiceId} in the host name: put it in the path, as in https://shop.example.com/orders/{invoiceId}',
    ],
    [
      'https://{invoiceId}@shop.example/',
      'has a user name or password before the "@", and every payer would see it: remove it',
    ],
    ['{invoiceId}', 'is not an https:// URL: use a URL such as https://shop.example.com/thanks'],
    ['javascript:{invoiceId}', 'is not an https:// URL: use a URL such as https://shop.example.com/thanks'],
    [`https://shop.example/${'x'.repeat(2010)}/{invoiceId}`, 'has 2062 characters: use at most 2048'],
  ])('%s is refused', (text, reason) => {
    expect(readReturnUrl(text)).toEqual({ kind: 'refused', reason });
  });
});
