import { expect, test } from 'vitest';
import { CliError } from './cli-error.ts';
import { readWebhookUrl } from './read-webhook-url.ts';

test('a URL is written as it will be called', () => {
  expect(readWebhookUrl('HTTPS://Shop.Example:443/hook?a=1', 'mainnet')).toBe('https://shop.example/hook?a=1');
  expect(readWebhookUrl('http://localhost:3000', 'devnet')).toBe('http://localhost:3000/');
});

test.each([
  ['a.example/hook', 'write for example https://'],
  ['https:/a.example', 'write for example https://'],
  ['ftp://a.example', 'write for example https://'],
  ['http://a.example/x?h0rse', 'must start with https://'],
  ['https://u:h0rse@a.example', 'user name or password'],
  ['https://a.example/?h0rse#x', 'remove everything from the "#" on'],
  [`https://a.example/${'x'.repeat(2048)}`, 'at most 2048'],
])('%s is refused on mainnet: %s', (text, says) => {
  const read = () => readWebhookUrl(text, 'mainnet');
  expect(read).toThrow(CliError);
  expect(read).toThrow(says);
  expect(read).not.toThrow('h0rse');
});
