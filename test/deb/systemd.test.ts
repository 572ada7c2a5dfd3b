import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { call, eventually } from '../support/service.ts';
import { buildPackage, installBareDebian, missingProgram } from './bare-debian.ts';
import { bootDebian } from './boot-debian.ts';
import { createSteps } from './steps.ts';

const PROGRAMS = { mmdebstrap: 'mmdebstrap', 'dpkg-deb': 'dpkg', unshare: 'util-linux', nsenter: 'util-linux' };
const UNIT = 'quittance.service';

test('systemd runs the unit of the package: active when it is ready, ended and started anew when it hangs, and failed with a setting that is wrong', async (context) => {
  const missing = await missingProgram(PROGRAMS);
  if (missing !== null) return context.skip(missing);
  const step = createSteps();
  const folder = await mkdtemp(join(tmpdir(), 'quittance-package-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const name = await buildPackage(folder);
  const debian = await installBareDebian('systemd', 'dbus');
  onTestFinished(debian.remove);
  await debian.put(join(folder, name));
  const booted = await bootDebian(debian.path);
  if (typeof booted === 'string') return context.skip(booted);
  const { inside } = booted;
  step('a Debian 12, booted');
  const at = (path: string) => join(debian.path, path);
  const show = async (): Promise<Record<string, string>> => {
    const names = 'ActiveState,Result,ExecMainStatus,MainPID,NRestarts,StatusText';
    const lines = (await inside('systemctl', 'show', UNIT, `--property=${names}`)).trim().split('\n');
    return Object.fromEntries(lines.map((line) => line.split('=')));
  };
  const setUp = async (settings: string) => appendFile(at('etc/quittance/env'), `${settings}\n`);

  await inside('apt-get', 'update', '-q');
  await inside('apt-get', 'install', '-y', '-q', `/root/${name}`);
  await setUp('QUITTANCE_PORT=0\nQUITTANCE_DEVNET_BLOCK_MS=200');
  step('apt-get install');
  await inside('systemctl', 'enable', '--now', UNIT);
  step('systemctl enable --now: ready');
  const first = await show();
  expect(first).toMatchObject({ ActiveState: 'active', NRestarts: '0' });
  // The rights that the unit removes are gone.
  const status = await inside('cat', `/proc/${first['MainPID']}/status`);
  expect(status).toMatch(/CapBnd:\t0{16}\nCapAmb:\t0{16}\nNoNewPrivs:\t1\nSeccomp:\t2/);
  expect(await inside('systemd-analyze', 'verify', UNIT)).toBe('');
  await inside('systemd-analyze', 'security', '--threshold=20', UNIT);

  // It shares this machine's network.
  const journal = await inside('journalctl', `--unit=${UNIT}`, '--output=cat', '--no-pager');
  const [, url = '', apiKey = ''] = /curl -sS (http:\S+)\/v1\/invoices[\s\S]*?X-Api-Key: (\w+)/.exec(journal) ?? [];
  const headers = { 'x-api-key': apiKey, 'idempotency-key': 'order-1', 'content-type': 'application/json' };
  const body = JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: 'order-1' });
  const invoice = await call(`${url}/v1/invoices`, { method: 'POST', headers, body });
  expect(invoice.status).toBe(201);
  await inside('quittance', 'sandbox', 'pay', 'order-1');
  await eventually(
    () => call(`${url}/v1/invoices/${invoice.body.invoiceId}`, { headers: { 'x-api-key': apiKey } }),
    (answer) => answer.body.status === 'PAID',
  );
  await eventually(
    () => readdir(at('var/backups/quittance')),
    (names) => names.some((each) => each.endsWith('.sha256')),
  );
  step('an invoice is PAID, and the first backup verified');

  await mkdir(at(`etc/systemd/system/${UNIT}.d`));
  await writeFile(at(`etc/systemd/system/${UNIT}.d/test.conf`), '[Service]\nWatchdogSec=6\n');
  await inside('systemctl', 'daemon-reload');
  await inside('systemctl', 'restart', UNIT);
  await inside('systemctl', 'kill', '--kill-whom=main', '--signal=STOP', UNIT);
  await eventually(show, ({ ActiveState, NRestarts }) => ActiveState === 'active' && NRestarts === '1');
  step('frozen, ended by the watchdog of 6 s, ready again');

  const settings = await readFile(at('etc/quittance/env'));
  await setUp('QUITTANCE_PORT=none');
  await expect(inside('systemctl', 'restart', UNIT)).rejects.toMatchObject({ code: 1 });
  expect(await show()).toMatchObject({ ActiveState: 'failed', ExecMainStatus: '2', NRestarts: '0' });
  await writeFile(at('etc/quittance/env'), settings);
  await inside('systemctl', 'restart', UNIT);
  step('failed with a setting that is wrong, and ready with one that is right');

  const before = await show();
  await inside('apt-get', 'install', '-y', '-q', '--reinstall', `/root/${name}`);
  const after = await show();
  expect(after).toMatchObject({ ActiveState: 'active', NRestarts: '0' });
  expect(after['MainPID']).not.toBe(before['MainPID']);
  step('installed anew over the running one');
  await inside('systemctl', 'stop', UNIT);
  expect(await show()).toMatchObject({ ActiveState: 'inactive', Result: 'success', ExecMainStatus: '0' });
  await inside('systemctl', 'start', UNIT);
  await inside('apt-get', 'remove', '-y', '-q', 'quittance');
  expect(await show()).toMatchObject({ ActiveState: 'inactive', MainPID: '0' });
  step('stopped, started, removed');
});
