import { describe, expect, test } from 'vitest';
import { checkAddresses, checkTarget, isPublicUnicast } from './target.ts';

test('public unicast is what is public of addresses in a standard spelling', () => {
  const seen = ['198.41.0.4', '2001:503:ba3e::2:30', '127.0.0.1', '10.0.0.1', '::1', 'shop.example', ''].map(
    isPublicUnicast,
  );
  expect(seen).toEqual([true, true, false, false, false, false, false]);
});

describe('what is refused before anything is resolved', () => {
  const reason = (url: string, rule: 'public' | 'local' = 'public') => {
    const check = checkTarget(new URL(url), rule);
    return check.kind === 'ok' ? 'ok' : check.reason;
  };

  test('every reason names what was seen and what to do, and nothing of the path, query or credentials', () => {
    const path = '/h0rse?token=h0rse#h0rse';
    const reasons = [
      [`http://a.example:8080${path}`, '"http://a.example:8080" must start with https://: plain http is not allowed'],
      [`https://h0rse:h0rse@a.example${path}`, '"https://a.example" has a user name or password: remove it'],
      [`https://a.example:444${path}`, '"https://a.example:444" has the port 444: use 443 or one from 1024 on'],
      [`https://10.0.0.5${path}`, '"10.0.0.5" is not allowed (10.0.0.0/8, private): only public addresses are allowed'],
      [`https://[::1]${path}`, '"::1" is not allowed (::1/128, loopback): only public addresses are allowed'],
      [`https://shop.internal.${path}`, '"shop.internal." is a local network name: only public addresses are allowed'],
      [`https://a..example${path}`, '"a..example" is not a host name: use one such as shop.example.com'],
    ] as const;
    for (const [url, says] of reasons) expect(reason(url)).toBe(says);
    expect(reason(`ftp://a.example${path}`, 'local')).toBe('"ftp://a.example" must start with https:// or http://');
    expect(reason(`https://${'a.'.repeat(400)}example`).length).toBeLessThan(160);
  });

  test('a user name alone, and a password alone, are refused', () => {
    const says = '"https://a.example" has a user name or password: remove it';
    for (const who of ['h0rse', ':h0rse', 'h0rse:h0rse']) {
      expect(reason(`https://${who}@a.example/`)).toBe(says);
      expect(reason(`https://${who}@a.example/`, 'local')).toBe(says);
    }
  });

  test('a name has 253 characters at most, of labels that begin and end with a letter, a digit or an underscore', () => {
    const long = `${'a'.repeat(60)}.`.repeat(4);
    const longest = `${long}${'b'.repeat(253 - long.length)}`;
    for (const name of [longest, `${longest}.`, 'a-b.c_d', '_a.b', `${'a'.repeat(63)}.b`, 'a.1x']) {
      expect(reason(`https://${name}/`)).toBe('ok');
    }
    for (const name of [
      `${longest}b`,
      '-a.b',
      'a-.b',
      'a.-b',
      `${'a'.repeat(64)}.b`,
      'a.b..',
      '.a.b',
      '!a.b',
      'a!.b',
    ]) {
      expect(reason(`https://${name}/`)).toMatch(/ is not a host name: use one such as shop\.example\.com$/);
    }
  });

  test('only the end of a name says that it is local', () => {
    for (const end of ['localhost', 'local', 'internal', 'home.arpa', 'onion']) {
      expect(reason(`https://a.${end}/`)).toBe(`"a.${end}" is a local network name: only public addresses are allowed`);
      for (const name of [`a.${end}.example`, `a.x${end}`]) expect(reason(`https://${name}/`)).toBe('ok');
    }
    expect(reason('https://shop/')).toContain('is a local network name');
  });

  test('of a long text 80 characters are shown', () => {
    const name = (length: number) => `${'a'.repeat(length - 2)}..`;
    expect(checkAddresses(name(80), [], 'public')).toEqual({
      kind: 'refused',
      reason: `"${name(80)}" resolves to no address: publish a public address for it`,
    });
    expect(checkAddresses(name(81), [], 'public')).toEqual({
      kind: 'refused',
      reason: `"${name(81).slice(0, 80)}…" resolves to no address: publish a public address for it`,
    });
  });

  test('of addresses all are judged by the rule, and are of one kind', () => {
    const judge = (rule: 'public' | 'local', ...ips: string[]) => {
      const check = checkAddresses(
        'a.example',
        ips.map((address) => ({ address, family: 4 })),
        rule,
      );
      return check.kind === 'ok' ? 'ok' : check.reason;
    };
    const LOCAL = 'only public addresses and loopback addresses on this machine are allowed';
    expect(judge('public', '8.8.8.8', '1.1.1.1')).toBe('ok');
    expect(judge('local', '127.0.0.1', '127.0.0.2')).toBe('ok');
    expect(judge('public', '8.8.8.8', '127.0.0.1')).toBe(
      '"a.example" resolves to 127.0.0.1 (127.0.0.0/8, loopback): only public addresses are allowed',
    );
    expect(judge('local', '8.8.8.8', '127.0.0.1')).toBe(
      '"a.example" resolves to both public and other addresses: use one kind only',
    );
    expect(judge('local', '10.0.0.1')).toBe(`"a.example" resolves to 10.0.0.1 (10.0.0.0/8, private): ${LOCAL}`);
    expect(reason('http://10.0.0.1/', 'local')).toBe(`"10.0.0.1" is not allowed (10.0.0.0/8, private): ${LOCAL}`);
    expect(reason('http://127.0.0.1/', 'local')).toBe('ok');
    expect(reason('http://[::1]/', 'local')).toBe('ok');
  });

  test('the port 443 and those from 1024 on are allowed, by the local rule all', () => {
    for (const port of ['', ':443', ':0443', ':1024', ':8443', ':65535']) {
      expect(reason(`https://a.example${port}/`)).toBe('ok');
    }
    for (const port of [':0', ':22', ':25', ':80', ':445', ':1023']) {
      expect(reason(`https://a.example${port}/`)).toContain(`has the port ${port.slice(1)}:`);
      expect(reason(`http://a.example${port}/`, 'local')).toBe('ok');
    }
  });

  test('the local rule lets names be decided by their addresses', () => {
    for (const host of ['localhost', 'localhost.', 'app.localhost', 'my-laptop', 'my-laptop.local']) {
      expect(reason(`http://${host}:3000/`, 'local')).toBe('ok');
      expect(reason(`https://${host}:3000/`)).toContain('local network');
    }
    expect(checkAddresses('my-laptop', [{ address: '192.168.1.7', family: 4 }], 'local')).toEqual({
      kind: 'refused',
      reason: expect.stringContaining('"my-laptop" resolves to 192.168.1.7 (192.168.0.0/16, private)'),
    });
    expect(checkAddresses('my-laptop', [{ address: '127.0.1.1', family: 4 }], 'local')).toEqual({ kind: 'ok' });
  });
});
