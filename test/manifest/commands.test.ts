import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deriveAddresses, parseAccountXpub } from '@quittance/tron/account-xpub';
import { expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import { parseManifest } from '../../src/core/domain/manifest/manifest.ts';
import { newDirectory, runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { createInvoice, eventually, readInvoice, startTestService } from '../support/service.ts';
import { HONEST_XPUB, OTHER_XPUB } from './xpubs.ts';

function derive(xpub: string, from: number, count: number) {
  const parsed = parseAccountXpub(xpub);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  return deriveAddresses(parsed.xpub, from, count);
}

function world() {
  const folder = newDirectory();
  const path = (name: string) => join(folder, name);
  writeFileSync(path('passphrase'), 'correct horse battery\n');
  return path;
}

const run = async (env: NodeJS.ProcessEnv, ...args: string[]) => runCli(['--json', 'manifest', ...args], { env });

test('a key is made, addresses are drafted, signed without a database, installed, and in force; a swapped account key is not drafted as one', async () => {
  const path = world();
  const config: { addressManifest?: never } = {};
  const service = await startTestService({ config });
  try {
    const key = await run({}, 'key', path('key'), '--passphrase-file', path('passphrase'));
    expect(key.code).toBe(0);
    const { publicKey } = key.json;
    expect(readFileSync(path('key'), 'utf8')).toContain(`# public key: ${publicKey}\n-----BEGIN AGE`);
    const manifest = path('addresses.manifest');
    const env = {
      DATABASE_URL: service.connectionString,
      QUITTANCE_DATA_DIR: path('data'),
      QUITTANCE_ADDRESS_MANIFEST: manifest,
      QUITTANCE_MANIFEST_KEYS: publicKey,
    };
    await runSql(
      service,
      `insert into account_keys (id, project_id, network, xpub, first_index, auto_derive_limit) values ('018f4c1e-0000-7000-8000-00000000000a', $1, 'devnet', $2, 0, 100)`,
      [service.project.id, HONEST_XPUB],
    );
    for (const { index, account, address } of derive(HONEST_XPUB, 0, 2)) {
      await runSql(
        service,
        `insert into addresses (id, project_id, network, account, address, policy, position, account_key_id, derivation_index)
         values (gen_random_uuid(), $1, 'devnet', decode($2, 'hex'), $3, 'tail', $4, '018f4c1e-0000-7000-8000-00000000000a', $5)`,
        [service.project.id, account, address, 10 + index, index],
      );
    }
    const draft = (name: string, ...more: string[]) =>
      run(env, 'draft', '--network', 'devnet', '--reserve', '3', '--output', path(name), ...more);
    const empty = await run(env, 'draft', '--output', path('empty'));
    expect(empty.json.error).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('name another network with --network'),
    });
    expect(existsSync(path('empty'))).toBe(false);
    const drafted = await draft('draft');
    expect(drafted.json).toMatchObject({ serial: 1, addresses: 1 + 2 + 3, warnings: [] });
    expect(drafted.json.changes.join('\n')).toContain('5 from the account key');
    expect((await draft('draft')).json.error.code).toBe('CONFLICT');

    const sign = (from: string, to: string, ...more: string[]) =>
      run(
        {},
        'sign',
        path(from),
        '--key',
        path('key'),
        '--passphrase-file',
        path('passphrase'),
        '--output',
        path(to),
        ...more,
      );
    const unasked = await sign('draft', 'signed');
    expect(unasked.json.error.message).toContain('nothing was signed');
    expect(unasked.stderr).toContain(`address added: ${service.project.addresses[0]}`);
    expect((await sign('draft', 'signed', '--yes')).json.signers).toEqual([publicKey]);
    writeFileSync(path('wrong'), 'another horse battery');
    const shut = await run(
      {},
      'sign',
      path('draft'),
      '--key',
      path('key'),
      '--passphrase-file',
      path('wrong'),
      '--yes',
    );
    expect(shut.json.error.message).toContain('cannot be opened');

    expect((await run(env, 'install', path('draft'))).json.error.message).toContain(
      '0 of the 1 pinned keys signed this version',
    );
    const nowhere = { ...env, QUITTANCE_ADDRESS_MANIFEST: path('missing/addresses.manifest') };
    expect((await run(nowhere, 'install', path('signed'))).json.error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /cannot be written \(ENOENT\): set QUITTANCE_ADDRESS_MANIFEST to a file in a directory/,
      ),
    });
    expect((await run(env, 'install', path('signed'))).json).toMatchObject({ serial: 1 });
    expect((await run(env, 'show')).json).toMatchObject({ serial: 1, signers: [publicKey], problem: null });
    expect((await run(env, 'verify')).code).toBe(0);
    expect((await run(env, 'verify', path('draft'))).code).toBe(1);

    const pinned = { needed: 1, keys: [publicKey] };
    Object.assign(config, { addressManifest: { path: manifest, pinned, mode: 'enforce', dataDir: path('data') } });
    await service.restart();
    const { body } = await createInvoice(service);
    expect((await readInvoice(service, body.invoiceId)).status).toBe(200);

    // A draft for other networks would ignore the addresses, and remove the project's from the manifest.
    const projectId = encodeId('prj', service.project.id);
    const ignored = await run(
      env,
      'draft',
      '--network',
      'nile',
      '--project',
      projectId,
      '--max-surcharge',
      '0.02',
      '--output',
      path('ignored'),
    );
    expect(ignored.json.error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`${projectId} is on devnet, but the draft is for nile: add --network devnet`),
    });
    expect(existsSync(path('ignored'))).toBe(false);
    // Without --network, it covers the networks of the manifest in force.
    const same = await run(env, 'draft', '--reserve', '3', '--output', path('same'));
    expect(same.json).toMatchObject({ serial: 2, addresses: 1 + 2 + 3, changes: [] });
    const unknown = await run(env, 'draft', '--project', 'prj_01j9zk7v5rfq4bt4n9q1v7h3ce', '--max-surcharge', '0.02');
    expect(unknown.json.error).toMatchObject({ code: 'NOT_FOUND' });

    // An unsigned address isn't added.
    const added = await runCli(['--json', 'address', 'add', 'TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7', '--no-check'], {
      env: { ...env, QUITTANCE_MANIFEST_MODE: 'enforce' },
    });
    expect(added.json.error).toMatchObject({ code: 'ADDRESS_NOT_VOUCHED' });
    expect(await runSql(service, `select 1 from addresses where address like 'TLa2%'`)).toEqual([]);

    // Swaps the account key, so that the next addresses would be a thief's.
    await runSql(service, 'alter table account_keys disable trigger all');
    await runSql(service, 'update account_keys set xpub = $1', [OTHER_XPUB]);
    const swapped = await draft('swapped', '--without', service.project.addresses[0] ?? '');
    expect(swapped.json.warnings.join()).toContain('someone changed the key or the addresses');
    const text = readFileSync(path('swapped'), 'utf8');
    for (const { address } of derive(OTHER_XPUB, 0, 9)) expect(text).not.toContain(address);
    expect(swapped.json.changes.join('\n')).toContain(`address REMOVED: ${service.project.addresses[0]}`);

    // The next manifest is compared with the previous one, and any other is refused.
    const strange = await sign('swapped', 'x', '--yes', '--previous', path('swapped'));
    expect(strange.json.error.message).toContain('does not follow');
    const next = await sign('swapped', 'second', '--yes', '--previous', path('signed'));
    expect(next.stderr).toContain('Changes since serial 1');
    expect((await run(env, 'install', path('second'))).json).toMatchObject({ serial: 2 });
    const refused = await eventually(
      () => readInvoice(service, body.invoiceId),
      ({ status }) => status === 503,
    );
    expect(refused.body.detail).toContain("No signed manifest contains this invoice's address");
    const back = await run(env, 'install', path('signed'));
    expect(back.json.error.message).toContain('serial 2');
  } finally {
    await service.stop();
  }
});

test('an address of a range that its account key does not yield is not signed', async () => {
  const path = world();
  const { VECTOR } = await import('./vector.ts');
  const { formatManifest } = await import('../../src/core/domain/manifest/manifest.ts');
  const addresses = derive(HONEST_XPUB, 0, 2).map(({ address }) => address as string);
  const write = (name: string, range: string[]) => {
    const entry = {
      addresses: [],
      maxSurcharge: '0.01',
      policy: 'tail' as const,
      xpubs: [{ addresses: range, count: 2, from: 0, xpub: HONEST_XPUB }],
    };
    const networks = { mainnet: { prj_01j9zk7v5rfq4bt4n9q1v7h3ce: entry } };
    writeFileSync(path(name), formatManifest({ manifest: { ...VECTOR, networks }, signatures: [] }));
  };
  write('planted', [addresses[0] ?? '', 'TLa2f6VPqDgRE67v1736s7bJ8Ray5wYjU7']);
  const refused = await run({}, 'sign', path('planted'), '--head', path('head'), '--yes');
  expect(refused.json.error).toMatchObject({
    code: 'MANIFEST_REFUSED',
    message: expect.stringContaining('index 1 of xpub'),
  });

  // An OpenSSH key signs the head.
  write('good', addresses);
  expect((await run({}, 'sign', path('good'), '--head', path('head'), '--yes')).code).toBe(0);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path('id')]);
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', path('id'), '-n', 'quittance-manifest', path('head')], {
    stdio: 'ignore',
  });
  const signed = await run(
    {},
    'sign',
    path('good'),
    '--signature',
    path('head.sig'),
    '--output',
    path('signed'),
    '--yes',
  );
  expect(signed.code).toBe(0);
  expect(parseManifest(readFileSync(path('signed'), 'utf8'))).toMatchObject({ signatures: [{ form: 'sshsig' }] });
  const keys = readFileSync(path('id.pub'), 'utf8').split(' ').slice(0, 2).join(' ');
  expect((await run({}, 'verify', path('signed'), '--keys', keys)).json).toMatchObject({ problem: null });
  const other = await run({}, 'sign', path('planted'), '--signature', path('head.sig'), '--yes');
  expect(other.code).not.toBe(0);
});
