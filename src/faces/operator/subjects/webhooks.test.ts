import { expect, test } from 'vitest';
import { AppError } from '../../../core/domain/errors.ts';
import { readWebhookUrl } from './webhooks.ts';

const MAINNET = ['mainnet', { webhooks: { localTargets: true } }] as const;
const NILE = ['nile', { webhooks: { localTargets: false } }] as const;
const SANDBOX = ['devnet', { webhooks: { localTargets: true } }] as const;

test('a URL is written as it will be called', () => {
  expect(readWebhookUrl('HTTPS://Shop.Example:443/hook?a=1', ...MAINNET)).toBe('https://shop.example/hook?a=1');
  expect(readWebhookUrl('https://shop.example/hook', ...NILE)).toBe('https://shop.example/hook');
  expect(readWebhookUrl('http://localhost:3000', ...SANDBOX)).toBe('http://localhost:3000/');
});

test.each([
  ['a.example/hook', 'use a URL such as https://'],
  ['https:/a.example', 'use a URL such as https://'],
  ['https:\\\\a.example', 'use a URL such as https://'],
  ['ftp://a.example', 'use a URL such as https://'],
  ['http://a.example/x?h0rse', 'must start with https://'],
  ['https://u:h0rse@a.example', 'user name or password'],
  ['https://a.example/?h0rse#x', 'remove the "#" and everything after it'],
  [`https://a.example/${'x'.repeat(2048)}`, 'at most 2048'],
  ['https://localhost:3000/?h0rse', 'local network'],
  ['https://192.168.0.10/?h0rse', '192.168.0.0/16'],
  ['https://a.example:25/?h0rse', 'port 25'],
  ['https://a.example/whsec_h0rse', 'a Quittance secret'],
  ['https://a.example/?key=qt_live_h0rse', 'a Quittance secret'],
])('%s is refused on mainnet, also where local targets are allowed: %s', (text, says) => {
  const read = () => readWebhookUrl(text, ...MAINNET);
  expect(read).toThrow(AppError);
  expect(read).toThrow(says);
  expect(read).not.toThrow('h0rse');
  expect(read).not.toThrow('QUITTANCE_WEBHOOK_LOCAL_TARGETS');
});

test('a test project on a machine that does not allow local targets hears how to allow them, where that would help', () => {
  for (const text of ['http://a.example', 'https://127.0.0.1/', 'https://localhost:3000']) {
    expect(() => readWebhookUrl(text, ...NILE)).toThrow('QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow');
  }
  expect(() => readWebhookUrl('https://10.0.0.1/', ...NILE)).not.toThrow('QUITTANCE_WEBHOOK_LOCAL_TARGETS');
  expect(() => readWebhookUrl('https://10.0.0.1/', ...SANDBOX)).toThrow('10.0.0.0/8');
});
