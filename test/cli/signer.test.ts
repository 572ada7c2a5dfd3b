import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { formatManifest } from '../../src/core/domain/manifest/manifest.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { installManifest } from '../../src/faces/operator/manifest/install-manifest.ts';
import { VECTOR } from '../manifest/vector.ts';
import { newFolder } from '../support/checkout-copy.ts';
import { longTest } from '../support/some-cases.ts';

const run = promisify(execFile);
const DRAFT = { ...VECTOR, notAfter: '2099-01-01T00:00:00.000Z' };

longTest(
  'the signer is one file: in an empty folder, with an empty environment, it makes a key, shows and signs, and the server installs that',
  async () => {
    const [folder, server] = [await newFolder(), await newFolder()];
    const built = await run('node', ['build/signer.js', join(folder, 'manifest-sign.mjs')]);
    const bytes = await readFile(join(folder, 'manifest-sign.mjs'));
    expect(built.stdout.split(' ')[0]).toBe(createHash('sha256').update(bytes).digest('hex'));
    // It imports only Node.js itself, and no part of Node.js that uses a network or starts a program.
    const led = [...bytes.toString().matchAll(/^import .* from ["'](.*)["'];$/gm)].map(([, name]) => name);
    expect(
      led.filter(
        (name) => !/^node:(module|events|path|fs\/promises|crypto|readline\/promises|stream)$/.test(name ?? ''),
      ),
    ).toEqual([]);

    await writeFile(join(folder, 'draft'), formatManifest({ manifest: DRAFT, signatures: [] }));
    await writeFile(join(folder, 'passphrase'), 'correct horse battery');
    const sign = async (...args: string[]) => {
      const { stdout, stderr } = await run(process.execPath, ['manifest-sign.mjs', '--json', ...args], {
        cwd: folder,
        env: {},
      });
      return { json: JSON.parse(stdout), stderr };
    };
    const secret = ['--passphrase-file', 'passphrase'];
    const { publicKey } = (await sign('key', 'key', ...secret)).json;
    const { json, stderr } = await sign('sign', 'draft', '--key', 'key', ...secret, '--yes');
    expect(json).toMatchObject({ serial: 1, signers: [publicKey] });
    expect(stderr).toContain('address added: TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t');
    expect(stderr).toContain('policy exact, surcharge limit 0.05 USDT');
    expect((await sign('show', 'addresses.manifest', '--keys', publicKey)).json).toMatchObject({ problem: null });
    await expect(sign('show', 'draft', '--keys', publicKey)).rejects.toMatchObject({ code: 1 });
    expect((await readdir(folder)).sort()).toEqual([
      'addresses.manifest',
      'draft',
      'key',
      'manifest-sign.mjs',
      'passphrase',
    ]);

    const settings = {
      ...{ path: join(server, 'addresses.manifest'), pinned: { needed: 1, keys: [publicKey] } },
      ...{ mode: 'enforce' as const, dataDir: join(server, 'data') },
    };
    await mkdir(settings.dataDir);
    const installed = await installManifest(settings, join(folder, 'addresses.manifest'), {
      now: unixMs(Date.now()),
      askLedger: async () => ({ ledgerId: DRAFT.ledgerId, projects: [] }),
    });
    expect(installed).toMatchObject({ serial: 1 });
  },
);
