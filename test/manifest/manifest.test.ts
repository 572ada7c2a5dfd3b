import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ed25519 } from '@noble/curves/ed25519.js';
import { expect, onTestFinished, test } from 'vitest';
import { describeChanges } from '../../src/core/domain/manifest/describe-changes.ts';
import {
  formatManifest,
  type Manifest,
  type ManifestSignature,
  parseManifest,
  vouchedAddresses,
} from '../../src/core/domain/manifest/manifest.ts';
import { headOf, pathOf } from '../../src/core/domain/manifest/manifest-head.ts';
import {
  formatPinnedKeys,
  lackOfSignatures,
  parsePinnedKeys,
  parseSshSignature,
  signHead,
} from '../../src/core/domain/manifest/manifest-signature.ts';
import { nativeSha256 } from '../../src/core/payments/manifest/read-installed.ts';
import { SSH_KEY, SSH_SIGNATURE, TOKEN_KEY, TOKEN_SIGNATURE, VECTOR, VECTOR_HEAD } from './vector.ts';

const KEYS = [1, 2, 3].map((byte) => new Uint8Array(32).fill(byte));
const head = (manifest: Manifest) => headOf(manifest, nativeSha256);
const text = formatManifest({ manifest: VECTOR, signatures: [] });

function pinned(text: string) {
  const parsed = parsePinnedKeys(text);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  return parsed.pinned;
}

test('a manifest is read as it was written, and its head never changes its form', () => {
  expect(parseManifest(text)).toEqual({ kind: 'ok', manifest: VECTOR, signatures: [] });
  expect(head(VECTOR).text).toBe(VECTOR_HEAD);
});

const PROJECT = 'prj_01j9zk7v5rfq4bt4n9q1v7h3ce';
const USDT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';

test.each([
  ['no JSON', 'x', 'not JSON'],
  ['an array', '[]', 'the file is not an object'],
  ['white space', text.replace(':', ': '), 'not in the exact form'],
  ['no end of the line', text.trim(), 'not in the exact form'],
  ['a name twice', text.replace('{"manifest"', '{"signatures":[],"manifest"'), 'a repeated name'],
  ['another order', text.replace(/("serial":1),("v":1)/, '$2,$1'), 'order'],
  ['an unknown member', text.replace('"v":1', '"v":1,"x":1'), 'manifest has the unknown member "x"'],
  ['__proto__', text.replace('"v":1', '"v":1,"__proto__":1'), 'unknown member "__proto__"'],
  ['a missing member', text.replace('"serial":1,', ''), 'lacks the member "serial"'],
  ['another version', text.replace('"v":1', '"v":2'), 'manifest.v is 2'],
  ['no ledger', text.replace('018f4c1e', 'ledger'), 'ledgerId is not a UUID'],
  ['no time', text.replace('2027-11-23T00:00:00.000Z', '2027-11-23'), 'notAfter is not a time'],
  ['a day that is none', text.replace('2027-11-23T', '2027-13-40T'), 'notAfter is not a time'],
  ['serial 0', text.replace('"serial":1', '"serial":0'), 'serial is not a whole number'],
  ['a fraction', text.replace('"serial":1', '"serial":1.5'), 'serial is not a whole number'],
  ['no previous', text.replace('"serial":1', '"serial":2'), 'previous must be null in serial 1'],
  ['another network', text.replace('"mainnet"', '"mainnet2"'), 'which is not a network'],
  ['no project', text.replace(PROJECT, 'prj_x'), 'which is not a project'],
  ['no address', text.replace(USDT, 'TR7'), '"TR7" is not an address'],
  ['an address twice', text.replace('TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH', USDT), 'appears twice'],
  ['an address of two projects', text.replace('TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7', USDT), 'appears twice'],
  ['a policy', text.replace('"exact"', '"free"'), 'policy must be one of'],
  ['a surcharge', text.replace('"0.05"', '"lots"'), 'maxSurcharge is not an amount'],
  [
    'a range without addresses',
    text.replace('"xpubs":[]', `"xpubs":[{"addresses":[],"count":1,"from":0,"xpub":"xpub${'6'.repeat(107)}"}]`),
    'a range of 1 must list as many',
  ],
  [
    'a signature of another form',
    text.replace('"signatures":[]', '"signatures":[{"form":"rsa","key":"","value":""}]'),
    "signature's form",
  ],
  [
    'many signatures',
    text.replace('"signatures":[]', `"signatures":[${'1,'.repeat(8)}1]`),
    'is not a list of at most 8',
  ],
])('a manifest with %s is refused, and the reason names it', (_what, changed, says) => {
  const read = parseManifest(changed);
  expect(read.kind === 'invalid' ? read.reason : 'it was taken').toContain(says);
});

test('every address is proven by its path alone, whatever their number', () => {
  for (const count of [1, 2, 3, 5, 8, 13]) {
    const addresses = Array.from({ length: count }, (_, index) => `T${'1'.repeat(32)}${'123456789ABCDEF'[index]}`);
    const entry = { addresses, maxSurcharge: '0.01', policy: 'tail' as const, xpubs: [] };
    const { tree, text } = head({ ...VECTOR, networks: { nile: { [PROJECT]: entry } } });
    const proven = [...vouchedAddresses({ nile: { [PROJECT]: entry } })].map((leaf, index) => {
      const start = nativeSha256(`address ${leaf.network} ${leaf.projectId} ${leaf.address}`);
      const climb = (hash: string, step: string) =>
        nativeSha256(step.startsWith('L') ? `node ${step.slice(1)} ${hash}` : `node ${hash} ${step.slice(1)}`);
      return pathOf(tree, index).reduce(climb, start);
    });
    expect(new Set(proven)).toEqual(new Set([JSON.parse(text).root]));
  }
});

test('so many of the pinned keys must have signed, each once, and the head as it is', () => {
  const { text } = head(VECTOR);
  const [one, two, three] = KEYS.map((key) => signHead(text, key)) as [never, never, never];
  const keys = KEYS.map((key) => signHead(text, key).key);
  const twoOfThree = pinned(`2 of ${keys.join(', ')}`);
  expect(formatPinnedKeys(twoOfThree)).toBe(`2 of ${keys.join(' ')}`);
  expect(lackOfSignatures(text, [one, three], twoOfThree)).toBe(null);
  expect(lackOfSignatures(text, [one, one], twoOfThree)).toContain('1 of the 3 pinned keys signed');
  expect(lackOfSignatures(text.replace('"serial":1', '"serial":2'), [one, two], twoOfThree)).toContain('0 of the 3');
  expect(lackOfSignatures(text, [one, two], pinned(`2 of ${keys[0]} ${keys[2]}`))).toContain(
    'keys that are not pinned',
  );
  // A signature in one form doesn't count in the other.
  expect(lackOfSignatures(text, [{ ...(one as object), form: 'sshsig' } as never], pinned(keys[0] ?? ''))).not.toBe(
    null,
  );
});

test.each([
  ['', 'must name 1 to 4 keys'],
  ['0 of KEY', 'requires 0 signatures'],
  ['3 of KEY', 'requires 3 signatures from 1'],
  ['KEY KEY', 'one key twice'],
  ['ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC', 'type ssh-rsa'],
  [
    'sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb20=',
    'only Ed25519 keys are accepted',
  ],
  ['AAAAC3NzaC1lZDI1NTE5AAAAIA==', 'a damaged SSH key'],
])('of the keys %j it is said what is wrong', (keys, says) => {
  const key = signHead('', KEYS[0] as Uint8Array).key;
  const parsed = parsePinnedKeys(keys.replaceAll('KEY', key));
  expect(parsed.kind === 'invalid' ? parsed.reason : 'it was taken').toContain(says);
});

test('a signature that ssh-keygen made is taken, as it was recorded', () => {
  const parsed = parseSshSignature(SSH_SIGNATURE);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  expect(lackOfSignatures(VECTOR_HEAD, [parsed.signature], pinned(`ssh-ed25519 ${SSH_KEY}`))).toBe(null);
  expect(lackOfSignatures(`${VECTOR_HEAD} `, [parsed.signature], pinned(SSH_KEY))).toContain('0 of the 1');
});

test('a signature of a hardware token is taken, if somebody touched it', () => {
  const keys = pinned(`sk-ssh-ed25519@openssh.com ${TOKEN_KEY}`);
  const parsed = parseSshSignature(TOKEN_SIGNATURE);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  const { signature } = parsed;
  expect(lackOfSignatures(VECTOR_HEAD, [signature], keys)).toBe(null);
  expect(lackOfSignatures(`${VECTOR_HEAD} `, [signature], keys)).toContain('0 of the 1');
  expect(parseManifest(formatManifest({ manifest: VECTOR, signatures: [signature] })).kind).toBe('ok');
  const bytes = Buffer.from(signature.value, 'base64');
  for (const at of [64, 68]) {
    const changed = Buffer.from(bytes);
    changed[at] = (changed[at] ?? 0) ^ 1;
    const value = changed.toString('base64');
    expect(lackOfSignatures(VECTOR_HEAD, [{ ...signature, value }], keys)).toContain('0 of the 1');
  }
  expect(lackOfSignatures(VECTOR_HEAD, [{ ...signature, form: 'sshsig' }], keys)).toContain('0 of the 1');
  // The signature of a token that wasn't touched is valid, but refused because of its flag.
  const untouched = signByToken(VECTOR_HEAD, 0);
  expect(lackOfSignatures(VECTOR_HEAD, [signByToken(VECTOR_HEAD, 1)], keys)).toBe(null);
  expect(lackOfSignatures(VECTOR_HEAD, [untouched], keys)).toContain('0 of the 1');
});

/** Signs like a token with the key of 32 bytes 7. */
function signByToken(head: string, flags: number): ManifestSignature {
  const text = (bytes: string | Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, Buffer.from(bytes)]);
  };
  const digest = (name: string, bytes: string | Buffer) => createHash(name).update(bytes).digest();
  const parts = ['quittance-manifest', '', 'sha512', digest('sha512', head)].map(text);
  const ofToken = Buffer.from([flags, 0, 0, 0, 9]);
  const message = [
    digest('sha256', 'ssh:'),
    ofToken,
    digest('sha256', Buffer.concat([Buffer.from('SSHSIG'), ...parts])),
  ];
  const privateKey = new Uint8Array(32).fill(7);
  const key = Buffer.from(ed25519.getPublicKey(privateKey)).toString('base64');
  const value = Buffer.concat([ed25519.sign(Buffer.concat(message), privateKey), ofToken]).toString('base64');
  return { form: 'sshsig-token', key, value };
}

const hasSshKeygen = (() => {
  try {
    execFileSync('ssh-keygen', ['-?'], { stdio: 'ignore' });
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
})();

test.runIf(hasSshKeygen)('a signature of ssh-keygen for another purpose, or of another type, is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'quittance-ssh-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'head');
  writeFileSync(file, VECTOR_HEAD);
  const sign = (type: string, ...options: string[]) => {
    const key = join(folder, `${type}-${options.join('-')}`);
    execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', '-f', key]);
    execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', key, ...options, file], { stdio: 'ignore' });
    const signature = readFileSync(`${file}.sig`, 'utf8');
    rmSync(`${file}.sig`);
    return { parsed: parseSshSignature(signature), key: readFileSync(`${key}.pub`, 'utf8').split(' ')[1] ?? '' };
  };
  const good = sign('ed25519', '-n', 'quittance-manifest');
  if (good.parsed.kind === 'invalid') throw new Error(good.parsed.reason);
  expect(lackOfSignatures(VECTOR_HEAD, [good.parsed.signature], pinned(good.key))).toBe(null);
  expect(sign('ed25519', '-n', 'file').parsed).toMatchObject({
    reason: expect.stringContaining('-n quittance-manifest'),
  });
  expect(sign('ecdsa', '-n', 'quittance-manifest').parsed).toMatchObject({
    reason: expect.stringContaining('only Ed25519'),
  });
  expect(sign('ed25519', '-n', 'quittance-manifest', '-O', 'hashalg=sha256').parsed).toMatchObject({
    reason: expect.stringContaining('leave out'),
  });
  expect(parseSshSignature(SSH_SIGNATURE.slice(0, 150)).kind).toBe('invalid');
});

test('what changes between two manifests is said in words', () => {
  const projects = VECTOR.networks.mainnet ?? {};
  const [first, second] = Object.keys(projects) as [string, string];
  const range = {
    addresses: [USDT, 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH'],
    count: 2,
    from: 7,
    xpub: `xpub${'6'.repeat(107)}`,
  };
  const after = {
    networks: { mainnet: { [first]: { ...(projects[first] as object), addresses: [], xpubs: [range] } as never } },
  };
  expect(describeChanges(VECTOR, VECTOR)).toEqual([]);
  expect(describeChanges(VECTOR, after)).toEqual([
    `mainnet ${second}: the project is REMOVED`,
    `mainnet ${second}: address REMOVED: TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7`,
  ]);
  expect(describeChanges(null, after)).toEqual([
    `mainnet ${first}: the project is new`,
    `mainnet ${first}: policy tail, surcharge limit 0.01 USDT`,
    expect.stringMatching(/2 from the account key xpub66666666…666666 added: indexes 7 to 8, TR7\w+ to TUE/),
  ]);
});
