import { existsSync } from 'node:fs';
import { appendFile, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { buildPackage, installBareDebian, missingProgram } from './bare-debian.ts';
import { createSteps } from './steps.ts';

const DATA = ['var/lib/quittance/postgres', 'var/lib/quittance/master-key'];

test('the Debian package is installed by apt in a bare Debian, takes a payment, and leaves the data when it is purged', async (context) => {
  const missing = await missingProgram({ mmdebstrap: 'mmdebstrap', 'dpkg-deb': 'dpkg', unshare: 'util-linux' });
  if (missing !== null) return context.skip(missing);
  const step = createSteps();
  const folder = await mkdtemp(join(tmpdir(), 'quittance-package-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const name = await buildPackage(folder);
  step(`build of ${name}, ${((await stat(join(folder, name))).size / 1e6).toFixed(1)} MB`);
  const debian = await installBareDebian();
  onTestFinished(debian.remove);
  step('a bare Debian 12');
  await debian.put(join(folder, name));
  await debian.put(join(import.meta.dirname, 'inside.mjs'));

  await debian.inside('apt-get', 'update', '-q');
  const installed = await debian.inside('apt-get', 'install', '-y', '-q', `/root/${name}`);
  step('apt-get install');
  expect(installed).toContain('systemctl enable --now quittance.service');
  const at = (path: string) => join(debian.path, path);
  const uid = Number(await debian.inside('id', '-u', 'quittance'));
  expect(await ownerOf(at('etc/quittance/env'))).toEqual({
    mode: '640',
    uid: 0,
    gid: Number(await debian.inside('id', '-g', 'quittance')),
  });
  expect(await ownerOf(at('var/lib/quittance'))).toMatchObject({ mode: '700', uid });
  await expect(
    debian.inside('setpriv', '--reuid=65534', '--clear-groups', 'quittance', 'project', 'list'),
  ).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('run this with sudo'),
  });

  await appendFile(at('etc/quittance/env'), 'QUITTANCE_PORT=0\nQUITTANCE_DEVNET_BLOCK_MS="200"\n');
  const seen = JSON.parse(await debian.inside('/usr/lib/quittance/node', '/root/inside.mjs'));
  step(
    `the service: ready after ${seen.startMs} ms, the invoice paid after ${seen.paidMs} ms, its backup after ${seen.backupMs} ms`,
  );
  expect(seen).toMatchObject({
    ...{ version: manifest.version, uid, executable: '/usr/lib/quittance/node', payCommand: 'quittance' },
    ...{ created: 201, status: 'PAID', exitCode: 0 },
  });

  await debian.inside('apt-get', 'remove', '-y', '-q', 'quittance');
  expect({ command: existsSync(at('usr/bin/quittance')), env: existsSync(at('etc/quittance/env')) }).toEqual({
    command: false,
    env: true,
  });
  const purged = await debian.inside('apt-get', 'purge', '-y', '-q', 'quittance');
  step('apt-get remove and purge');
  expect(purged).toMatch(/your data stay.*\s+\/var\/lib\/quittance\s+\/var\/backups\/quittance\s+They/);
  expect(existsSync(at('etc/quittance/env'))).toBe(false);
  expect(Number(await debian.inside('id', '-u', 'quittance'))).toBe(uid);
  expect(DATA.filter((path) => !existsSync(at(path)))).toEqual([]);
  // Made by the service itself, and verified: unverified backups have another name.
  expect(await readdir(at('var/backups/quittance'))).toEqual([
    expect.stringMatching(/^quittance-000001-.*\.backup$/),
    expect.stringMatching(/^quittance-000001-.*\.backup\.sha256$/),
  ]);
});

async function ownerOf(path: string) {
  const { mode, uid, gid } = await stat(path);
  return { mode: (mode & 0o777).toString(8), uid, gid };
}
