import { expect, test } from 'vitest';
import { isLoopback, isLoopbackLink } from './loopback.ts';

test.each(['localhost', 'LocalHost', '127.0.0.1', '127.255.0.99', '::1', '[::1]'])('%s is this machine', (host) => {
  expect([isLoopback(host), isLoopbackLink(host)]).toEqual([true, true]);
});

test.each(['shop.localhost', 'a.b.localhost'])(
  '%s is this machine to a browser, and a name to be looked up else',
  (host) => {
    expect([isLoopback(host), isLoopbackLink(host)]).toEqual([false, true]);
  },
);

test.each([
  ...['', 'localhost.example.com', 'notlocalhost', '.localhost', '127.0.0.256', '127.1.example.com'],
  ...['127.0.0.1.', '127.0.0.1:80', '126.0.0.1', '0.0.0.0', '::', '[::1', '::2', '10.0.0.1'],
])('"%s" is not', (host) => {
  expect([isLoopback(host), isLoopbackLink(host)]).toEqual([false, false]);
});
