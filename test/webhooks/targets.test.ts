import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  checkTarget,
  createCheckedLookup,
  createTargetConnector,
  type LookupAll,
} from '../../src/core/webhooks/target.ts';

/** The addresses of these tests' names. No test uses the machine's resolver, or connects to another machine. */
const INSIDE: Readonly<Record<string, readonly string[]>> = {
  'rebound.example': ['127.0.0.1'],
  '127.0.0.1.nip.example': ['127.0.0.1'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'mixed.example': ['198.41.0.4', '10.0.0.1'],
  'metadata.example': ['169.254.169.254'],
  'zone.example': ['fe80::1%eth0'],
  'any.example': ['::'],
  'nat64-inside.example': ['64:ff9b::a00:1'],
  'old-6to4.example': ['2002:7f00:1::'],
  'unknown.example': [],
};
const PUBLIC: Readonly<Record<string, readonly string[]>> = {
  'receiver.example': ['198.41.0.4'],
  'receiver.example.': ['198.41.0.4'],
  'two.example': ['198.41.0.4', '2001:503:ba3e::2:30'],
  'nat64.example': ['64:ff9b::c629:4'],
  'xn--bcher-kva.example': ['198.41.0.4'],
};

/** A name that isn't among `names` fails, and so does the test that asked for it. */
function resolverOf(names: Readonly<Record<string, readonly string[]>>): LookupAll {
  return (name, _options, callback) => {
    const addresses = names[name];
    if (addresses === undefined) callback(new Error(`${name} is not to be looked up here`), []);
    else
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
  };
}

/** Listens where the spellings of loopback point to, and must never get a connection. */
const decoy = createServer((socket) => socket.destroy());
let connections = 0;
decoy.on('connection', () => {
  connections += 1;
});
const connect = createTargetConnector({ rule: 'public', connectTimeoutMs: 2000, lookup: resolverOf(INSIDE) });
const agent = new Agent({ connect });

beforeAll(async () => {
  decoy.listen(0, '127.0.0.1');
  await once(decoy, 'listening');
});
afterAll(async () => {
  await agent.destroy();
  decoy.close();
});

const parse = (text: string) => {
  const written = text.replace('{port}', String((decoy.address() as AddressInfo).port));
  return URL.canParse(written) ? new URL(written) : null;
};

/**
 * Returns what refuses an attempt: the URL parser, the check of the URL, the connector, or both. The connector is always asked, except
 * about credentials, which it doesn't see.
 */
async function refusedBy(text: string): Promise<string[]> {
  const url = parse(text);
  if (url === null) return ['parser'];
  const byCheck = checkTarget(url, 'public').kind === 'refused' ? ['check'] : [];
  if (url.username !== '' || url.password !== '') return byCheck;
  const code = await request(url, { dispatcher: agent, method: 'POST' }).then(
    () => 'none',
    (error: NodeJS.ErrnoException) => error.code,
  );
  return code === 'TARGET_REFUSED' ? [...byCheck, 'connector'] : [`not by the connector (${code})`];
}

const REFUSED = [['parser'], ['check'], ['check', 'connector'], ['connector']];

describe('targets that get no connection, however they are spelled', () => {
  test.each([
    // 127.0.0.1 in all number formats that C libraries accept.
    ...['https://127.0.0.1:{port}', 'https://127.1:{port}', 'https://127.0.1:{port}', 'https://2130706433:{port}'],
    ...[
      'https://0x7f000001:{port}',
      'https://0X7F.1:{port}',
      'https://0x7f.0x0.0x0.0x1:{port}',
      'https://017700000001:{port}',
    ],
    ...[
      'https://0177.0.0.1:{port}',
      'https://0177.1:{port}',
      'https://00000177.0.0.01:{port}',
      'https://127.0.0.0x1:{port}',
    ],
    ...[
      'https://127.0.0.1.:{port}',
      'https://127.0.0.1。:{port}',
      'https://127。0。0。1:{port}',
      'https://127.0.0.1..:{port}',
    ],
    ...[
      'https://１２７.0.0.1:{port}',
      'https://①②⑦.⓪.⓪.①:{port}',
      'https://𝟏𝟐𝟕.𝟎.𝟎.𝟏:{port}',
      'https://%31%32%37.0.0.1:{port}',
    ],
    ...[
      'https://127%2E0%2E0%2E1:{port}',
      'https://127.٠.0.1:{port}',
      'https://256.0.0.1:{port}',
      'https://1.2.3.4.5:{port}',
    ],
    ...[
      'https://4294967297:{port}',
      'https://08.0.0.1:{port}',
      'https://127.0.0.1%00:{port}',
      'https://127.0.0.-1:{port}',
    ],
    // The rest of the machine and its networks.
    ...['https://127.255.255.254', 'https://0', 'https://0.0.0.0', 'https://0x', 'https://10.0.0.1', 'https://012.1'],
    ...[
      'https://172.16.0.1',
      'https://172.31.255.255',
      'https://0300.0250.1',
      'https://3232235521',
      'https://192.168.1.1',
    ],
    ...[
      'https://100.64.0.1',
      'https://198.18.0.1',
      'https://224.0.0.1',
      'https://255.255.255.255',
      'https://4294967295',
    ],
    // Cloud metadata.
    ...[
      'https://169.254.169.254/latest/meta-data',
      'https://2852039166',
      'https://0xA9FEA9FE',
      'https://0251.0376.0251.0376',
    ],
    ...['https://169.254.170.2', 'https://100.100.100.200', 'https://192.0.0.192', 'https://168.63.129.16'],
    ...[
      'https://[fd00:ec2::254]',
      'https://[::ffff:a9fe:a9fe]',
      'https://metadata.google.internal',
      'https://metadata',
    ],
    // IPv6, and IPv4 inside it.
    ...[
      'https://[::1]:{port}',
      'https://[0:0:0:0:0:0:0:1]:{port}',
      'https://[::]:{port}',
      'https://[0000::0001]:{port}',
    ],
    ...[
      'https://[::ffff:127.0.0.1]:{port}',
      'https://[::FFFF:7F00:1]:{port}',
      'https://[0:0:0:0:0:ffff:127.0.0.1]:{port}',
    ],
    ...[
      'https://[::127.0.0.1]:{port}',
      'https://[::7f00:1]:{port}',
      'https://[::ffff:0:7f00:1]:{port}',
      'https://[::ffff:10.0.0.1]',
    ],
    ...[
      'https://[64:ff9b::127.0.0.1]:{port}',
      'https://[64:ff9b::a00:1]',
      'https://[64:ff9b:1::808:808]',
      'https://[2002:7f00:1::]',
    ],
    ...[
      'https://[2001:0:7f00:1::]',
      'https://[2001:db8::1]',
      'https://[3fff::1]',
      'https://[5f00::1]',
      'https://[100::1]',
    ],
    ...[
      'https://[fe80::1]',
      'https://[fe80::1%25eth0]',
      'https://[fe80::1%eth0]',
      'https://[febf::1]',
      'https://[fec0::1]',
    ],
    ...[
      'https://[fc00::1]',
      'https://[fdff::1]',
      'https://[ff02::1]',
      'https://[4000::1]',
      'https://[::ffff:0177.0.0.1]',
    ],
    // Names.
    ...[
      'https://localhost:{port}',
      'https://LOCALHOST.:{port}',
      'https://localhost..:{port}',
      'https://a.localhost:{port}',
    ],
    ...[
      'https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}',
      'https://lo\tcal\nhost:{port}',
      'https://local\u00adhost:{port}',
      'https://localhost%2e:{port}',
    ],
    ...[
      'https://shop.local',
      'https://shop.INTERNAL.',
      'https://nas.home.arpa',
      'https://abc.onion',
      'https://intranet',
    ],
    ...[
      'https://.',
      'https://a..example',
      `https://${'a'.repeat(64)}.example`,
      'https://ex*mple.example',
      'https://0xg',
    ],
    ...['https://rebound.example:{port}', 'https://127.0.0.1.nip.example:{port}', 'https://mapped.example:{port}'],
    ...['https://mixed.example', 'https://metadata.example', 'https://zone.example', 'https://any.example:{port}'],
    ...['https://nat64-inside.example', 'https://old-6to4.example', 'https://unknown.example'],
    // Credentials, and texts that only look like credentials.
    ...[
      'https://receiver.example@127.0.0.1:{port}',
      'https://receiver.example:443@127.0.0.1:{port}',
      'https://@127.0.0.1:{port}',
    ],
    ...['https://u@receiver.example', 'https://:p@receiver.example', 'https://receiver.example%40127.0.0.1:{port}'],
    ...[
      'https://127.0.0.1:{port}\\@receiver.example',
      'https://127.0.0.1:{port}#@receiver.example',
      'https:\\\\127.0.0.1:{port}',
    ],
    ...[
      'https:///127.0.0.1:{port}',
      'https:127.0.0.1:{port}',
      'https:/\\127.0.0.1:{port}',
      ' https://127.0.0.1:{port}',
    ],
    // Schemes and ports.
    ...[
      'http://receiver.example',
      'http://receiver.example:443',
      'https://receiver.example:22',
      'https://receiver.example:80',
    ],
    ...[
      'https://receiver.example:0',
      'https://receiver.example:1023',
      'https://receiver.example:65979',
      'https://198.41.0.4:25',
    ],
  ])('%s', async (text) => {
    expect(REFUSED).toContainEqual(await refusedBy(text));
    expect(connections).toBe(0);
  });

  test.each(['ftp://receiver.example', 'file:///etc/passwd', 'gopher://127.0.0.1', 'data:,x', 'unix:/run/docker.sock'])(
    '%s, which no sender of HTTP takes',
    (text) => {
      for (const rule of ['public', 'local'] as const) {
        expect(checkTarget(new URL(text), rule)).toMatchObject({ kind: 'refused' });
      }
    },
  );
});

/** Returns the addresses that an attempt would connect to. */
async function dialled(text: string): Promise<unknown> {
  const url = parse(text);
  if (url === null || checkTarget(url, 'public').kind !== 'ok') return 'refused';
  if (!/[a-z]/.test(url.hostname) || url.hostname.startsWith('[')) return [url.hostname];
  return new Promise((resolve) => {
    createCheckedLookup({ rule: 'public', lookup: resolverOf(PUBLIC) })(
      url.hostname,
      { all: true },
      (error, addresses) => {
        resolve(error === null && Array.isArray(addresses) ? addresses.map(({ address }) => address) : error);
      },
    );
  });
}

test.each([
  ['https://receiver.example/hook?token=1', ['198.41.0.4']],
  ['https://RECEIVER.example.:8443', ['198.41.0.4']],
  ['https://two.example:1024', ['198.41.0.4', '2001:503:ba3e::2:30']],
  ['https://nat64.example', ['64:ff9b::c629:4']],
  ['https://bücher.example:65535', ['198.41.0.4']],
  ['https://198.41.0.4', ['198.41.0.4']],
  ['https://3324575748', ['198.41.0.4']],
  ['https://172.32.0.1', ['172.32.0.1']],
  ['https://100.128.0.1', ['100.128.0.1']],
  ['https://[2001:503:ba3e::2:30]:443', ['[2001:503:ba3e::2:30]']],
  ['https://[::ffff:198.41.0.4]', ['[::ffff:c629:4]']],
])('%s is public, and %j is connected to', async (text, addresses) => {
  expect(await dialled(text)).toEqual(addresses);
});
