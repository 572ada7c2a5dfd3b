import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { formatManifest } from '../../src/core/domain/manifest/manifest.ts';
import { SSH_KEY, SSH_SIGNATURE, VECTOR } from '../manifest/vector.ts';
import { addressOf, txIdOf } from './explain-ledger.ts';
import { startRecording } from './golden-record.ts';
import { newDirectory, runCli } from './run-cli.ts';

// See golden.test.ts.

afterEach(() => {
  vi.useRealTimers();
});

/** Returns the commands listed in a help text, except those that Commander adds. */
async function commandsIn(path: readonly string[]): Promise<string[]> {
  const { stdout } = await runCli([...path, '--help']);
  const [, list = ''] = stdout.split('\nCommands:\n');
  const names = [...(list.split('\n\n')[0] ?? '').matchAll(/^ {2}(\S+)/gm)].map(([, name = '']) => name);
  return names.filter((name) => name !== 'help');
}

/** Returns each group and command, with a group before its contents. */
async function allCommands(path: readonly string[] = []): Promise<string[][]> {
  const below = await Promise.all((await commandsIn(path)).map((name) => allCommands([...path, name])));
  return [[...path], ...below.flat()];
}

test('each command helps with the same words', async () => {
  const commands = await allCommands();
  const { run, finish } = startRecording('help', {});
  for (const command of commands) await run([...command, '--help']);
  await finish();
});

test('a command that cannot do anything says so with the same words and exit code', async () => {
  const { run, both, finish } = startRecording('refusals', { QUITTANCE_DATA_DIR: newDirectory() });
  await both([]);
  await both(['proect', 'list']);
  await both(['project', 'lost']);
  await run(['help', 'receipt']);
  await run(['help', 'odd']);
  await both(['project', 'list', '--odd']);
  await both(['key', 'revoke']);
  await both(['transfers', txIdOf(1)]);
  await both(['project', 'list']);
  await both(['explain', 'order-1']);
  await both(['sandbox', 'pay', 'order-1']);
  await both(['sandbox', 'pay', 'order-1', '--scenario', 'odd']);
  await both(['sandbox', 'fill']);
  await both(['sandbox', 'fill', '--invoices', '0']);
  await both(['trigger', 'invoice.paid']);
  await both(['trigger', 'odd']);
  await both(['devnet', '--port', 'odd']);
  await both(['devnet', 'pay', 'T0', '1,50', '--node', 'grpc://127.0.0.1:9092']);
  await both(['invoice', 'withdraw', 'inv_1']);
  await both(['database', 'list', '--server', 'https://pay.example']);
  await both(['database', 'remove', '--server', 'https://pay.example']);
  await both(['setup', '--site', 'https://pay.example.com']);
  await run(['listen', '--forward-to', 'http://localhost:3000/hook']);
  await run(['listen', '--server', 'https://pay.example', '--forward-to', 'odd']);
  await both(['project', 'list'], { env: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/quittance' } });
  const wrong = {
    DATABASE_URL: 'mysql://x',
    QUITTANCE_PORT: '99999',
    QUITTANCE_NILE_NODES: 'ftp://x',
    QUITTANCE_ODD: '1',
  };
  await both(['start'], { env: wrong });
  await both(['project', 'list'], { env: wrong });
  await both(['doctor'], { env: wrong });
  await finish();
});

/** Signs a receipt like the service, with a key that isn't secret. */
function signReceipt(receipt: object) {
  const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)]);
  const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const jwk = { crv: 'Ed25519', kty: 'OKP', x };
  const kid = createHash('sha256').update(JSON.stringify(jwk)).digest('base64url');
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = encode({ alg: 'EdDSA', jwk, kid, typ: 'quittance-receipt+jws' });
  const signature = sign(null, Buffer.from(`${header}.${encode(receipt)}`), privateKey).toString('base64url');
  return { signed: { receipt, signature: `${header}..${signature}` }, keys: { keys: [{ ...jwk, kid, use: 'sig' }] } };
}

test('a receipt is judged with the same words', async () => {
  const { run, both, finish } = startRecording('receipt', {});
  // In the order of its canonical form.
  const { signed, keys } = signReceipt({
    ...{ amount: '25.000137', asset: 'USDT', chain: 'nile', contract: addressOf(1), from: addressOf(2) },
    ...{ issuer: 'https://pay.example', merchant: 'Shop', network: 'TRON', to: addressOf(3) },
    transaction: {
      ...{ blockId: txIdOf(4), blockNumber: 7, blockTime: '2026-09-01T10:04:00.000Z', logIndex: 0, txId: txIdOf(5) },
    },
    version: 1,
  });
  const folder = newDirectory();
  const save = (name: string, value: object) => {
    writeFileSync(join(folder, name), JSON.stringify(value));
    return join(folder, name);
  };
  const text = JSON.stringify(signed);
  const keyFile = save('keys.json', keys);
  const verify = (stdin: string, ...options: string[]) => both(['receipt', 'verify', '-', ...options], { stdin });
  await both(['receipt', 'verify', save('receipt.json', signed)]);
  await verify(text, '--keys', keyFile);
  await verify(text.replace('Shop', 'Stop'));
  await verify(text.slice(1));
  await verify(text, '--keys', 'package.json');
  await run(['receipt', 'verify', 'gone.json', '--json']);
  await finish();
});

test('a manifest is made, signed, installed and shown with the same words', async () => {
  const folder = newDirectory();
  const save = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const named: Record<string, string> = {};
  const env = {
    QUITTANCE_DATA_DIR: folder,
    QUITTANCE_ADDRESS_MANIFEST: join(folder, 'addresses.manifest'),
    QUITTANCE_MANIFEST_KEYS: SSH_KEY,
  };
  const { run, both, finish } = startRecording('manifest', env, named);
  const passphrase = save('passphrase', 'correct horse battery');
  const { publicKey } = await run(['manifest', 'key', join(folder, 'key'), '--passphrase-file', passphrase, '--json']);
  named[publicKey] = '<public key>';
  await both(['manifest', 'key', join(folder, 'key'), '--passphrase-file', passphrase]);
  await both(['manifest', 'draft']);
  await both(['manifest', 'draft', '--add', 'T1']);
  const draft = save('draft', formatManifest({ manifest: VECTOR, signatures: [] }));
  await both(['manifest', 'sign', draft]);
  await both(['manifest', 'sign', draft, '--key', join(folder, 'key')]);
  await run(['manifest', 'sign', draft, '--head', join(folder, 'head'), '--yes']);
  const signed = join(folder, 'signed');
  const signature = save('head.sig', SSH_SIGNATURE);
  await run(['manifest', 'sign', draft, '--signature', signature, '--output', signed, '--yes']);
  await both(['manifest', 'sign', draft, '--signature', signature, '--output', signed, '--yes']);
  await both(['manifest', 'show']);
  await both(['manifest', 'install', draft]);
  await run(['manifest', 'install', signed]);
  await both(['manifest', 'install', signed]);
  await both(['manifest', 'show']);
  await both(['manifest', 'verify']);
  await both(['manifest', 'verify', draft]);
  await finish();
});

test('there is no command of which nothing is recorded but its help', async () => {
  const folder = new URL('golden/commands/', import.meta.url);
  const shown = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'));
  const lines = shown.join('\n').match(/^\$ quittance .*$/gm) ?? [];
  const recorded = lines.filter((line) => !line.endsWith(' --help'));
  const all = await allCommands();
  const groups = new Set(all.map((path) => path.slice(0, -1).join(' ')));
  const missing = all
    .map((path) => path.join(' '))
    .filter((name) => !groups.has(name) && !recorded.some((line) => `${line} `.startsWith(`$ quittance ${name} `)));
  expect(missing).toEqual([]);
});
