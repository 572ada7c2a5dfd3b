import { expect, test } from 'vitest';
import { clientNetwork, plainAddress } from './client-address.ts';

test.each([
  ['198.51.100.7', '198.51.100.7'],
  // Azure Application Gateway, and AWS with xff_client_port.
  ['198.51.100.7:4711', '198.51.100.7'],
  ['[2001:db8::7]:4711', '2001:db8::7'],
  ['[2001:db8::7]', '2001:db8::7'],
  ['2001:db8::7', '2001:db8::7'],
  ['fe80::1%eth0', 'fe80::1'],
  ['[fe80::1%eth0]:80', 'fe80::1'],
  ['::ffff:198.51.100.7', '198.51.100.7'],
  ['[::ffff:198.51.100.7]:4711', '198.51.100.7'],
  ['::FFFF:c633:6407', '198.51.100.7'],
  ['0:0:0:0:0:ffff:c633:6407', '198.51.100.7'],
  ['::1:ffff:198.51.100.7', '::1:ffff:198.51.100.7'],
])('%s is the address %s', (text, address) => {
  expect(plainAddress(text)).toBe(address);
});

test.each([
  '',
  'unknown',
  '_hidden',
  '999.1.1.1',
  '010.1.2.3',
  '127.1',
  '198.51.100.7:',
  '198.51.100.7:4711:1',
  '[198.51.100.7]:80',
  '[2001:db8::7',
  '2001:db8::7]:80',
  '1:2:3:4:5:6:7:8:9',
  'localhost:80',
  `${'9'.repeat(100_000)}:80`,
])('%.40s is no address', (text) => {
  expect(plainAddress(text)).toBeNull();
});

test.each([
  ['2001:db8:1:2::1', '2001:DB8:1:2:ffff:0:0:9'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2:3:4:1.2.3.4'],
  ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
])('%s and %s are of one network', (one, another) => {
  expect(clientNetwork(one)).toBe(clientNetwork(another));
});
