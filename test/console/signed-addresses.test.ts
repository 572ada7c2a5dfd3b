import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAddressGuard } from '../../src/core/payments/manifest/address-guard.ts';
import { readInstalled } from '../../src/core/payments/manifest/read-installed.ts';
import { listAddresses } from '../../src/core/store/ledger/addresses.ts';
import { newAddress } from '../addresses/shop.ts';
import { type GuardedService, openGuardedService } from '../manifest/guarded-service.ts';
import { OTHER_XPUB } from '../manifest/xpubs.ts';
import { createTestProject } from '../support/service.ts';
import { startTestConsole, type TestConsole, tokenIn } from './console.ts';

let service: GuardedService;
let console_: TestConsole;
let guard: ReturnType<typeof createAddressGuard>;
let settings: Parameters<typeof readInstalled>[0];

beforeAll(async () => {
  service = await openGuardedService('warn');
  const { manifestPath: path, pinned } = service;
  settings = { path, pinned, mode: 'warn', dataDir: join(dirname(path), 'data') };
  guard = createAddressGuard(settings, () => undefined);
  console_ = await startTestConsole(service, { addressGuard: guard });
  await sign();
});
afterAll(async () => {
  await console_.stop();
  await service.stop();
});

/** Signs these addresses together with the project's, and puts the manifest in force in the console like a process does. */
async function sign(...more: string[]): Promise<void> {
  await service.vouchFor([...(await own()), ...more]);
  const read = await readInstalled(settings, { ledgerId: null, now: null });
  if (read.kind !== 'ok') throw new Error(read.reason);
  guard.install(read.installed);
}

const own = async () => (await listAddresses(service.db, service.project.id)).map(({ address }) => address as string);

async function submit(path: string, form: Record<string, string>) {
  return console_.post(path, { token: tokenIn(await console_.get(path), path), ...form });
}

function add(...addresses: string[]) {
  const [first = '', last = ''] = [addresses[0]?.slice(-6), addresses.at(-1)?.slice(-6)];
  return submit('/addresses/add', { list: addresses.join('\n'), firstEnding: first, lastEnding: last });
}

test('an address that the manifest in force names does not wait; with one beside it that nobody signed, both do', async () => {
  const [signed, unsigned] = [newAddress().address, newAddress().address];
  await sign(signed);
  expect((await console_.get('/addresses/add')).text).toContain(
    'contains all of these addresses, invoices use them immediately',
  );
  const both = await add(signed, unsigned);
  expect([both.status, both.text.includes('The addresses are not used for invoices yet')]).toEqual([200, true]);
  expect(await own()).not.toContain(signed);
  const change = /\/addresses\/changes\/chg_[0-9a-z]{26}/.exec(both.text)?.[0] ?? '';
  await submit(`${change}/withdraw`, {});

  const one = await add(signed);
  expect([one.status, one.text.includes('can now use these addresses')]).toEqual([200, true]);
  expect(await own()).toContain(signed);
});

test('an address that is signed for another project waits', async () => {
  const { address } = newAddress();
  const other = await createTestProject(service.db);
  const entry = { addresses: [address], maxSurcharge: '0.01', policy: 'tail' as const, xpubs: [] };
  await service.vouchFor([], { networks: { devnet: { [other.projectId]: entry } } });
  const read = await readInstalled(settings, { ledgerId: null, now: null });
  if (read.kind === 'ok') guard.install(read.installed);
  const reply = await add(address);
  expect(reply.text).toContain('The addresses are not used for invoices yet');
  await sign();
});

test('what is derived does not wait if it is signed, and waits if it is not', async () => {
  const [first, second] = ['/addresses/derive', '/addresses/derive/compare'];
  const derive = async () => {
    const shown = await console_.post(first, {
      ...{ token: tokenIn(await console_.get(first), first), xpub: OTHER_XPUB, count: '1', isFresh: 'yes' },
    });
    const seen = /name="seen" value="([^"]+)"/.exec(shown.text)?.[1] ?? '';
    return { seen, token: tokenIn(shown, second) };
  };
  const { seen, token } = await derive();
  const form = { xpub: OTHER_XPUB, count: '1', isFresh: 'yes', seen, ending: seen.slice(-6) };
  const waits = await console_.post(second, { ...form, token });
  expect(waits.text).toContain('The addresses are not used for invoices yet');
  const change = /\/addresses\/changes\/chg_[0-9a-z]{26}/.exec(waits.text)?.[0] ?? '';
  await submit(`${change}/withdraw`, {});
  await sign(seen);
  const added = await console_.post(second, { ...form, token: (await derive()).token });
  expect(added.text).toContain('can now use these addresses');
  expect(await own()).toContain(seen);
});

test('the list of addresses says which are signed, and Today what is missing', async () => {
  const page = `/addresses?project=${service.project.projectId}`;
  const today = `/?project=${service.project.projectId}`;
  await sign();
  expect((await console_.get(page)).text).not.toContain('Not signed');
  expect((await console_.get(today)).text).toContain('Done: </span>Sign your addresses');
  const [one = ''] = await own();
  const rest = (await own()).slice(1);
  await service.vouchFor(rest);
  const read = await readInstalled(settings, { ledgerId: null, now: null });
  if (read.kind === 'ok') guard.install(read.installed);
  const listed = (await console_.get(page)).text;
  expect(listed.match(/>Not signed</g)).toHaveLength(1);
  expect(listed.match(/>Signed</g)?.length).toBeGreaterThanOrEqual(rest.length);
  expect(listed.indexOf(one)).toBeLessThan(listed.indexOf('>Not signed<'));
  const text = (await console_.get(today)).text;
  expect(text).toMatch(/1 address in use is not signed|address-not-vouched/);
  expect(text).not.toContain('Done: </span>Sign your addresses');
  await sign();
});

test('a project of real money whose addresses no manifest names is a concern; one of a test network is not', async () => {
  const bare = await startTestConsole();
  const { db, project } = bare.service;
  const live = await createTestProject(db, { network: 'mainnet', addressCount: 2 });
  const text = (await bare.get(`/?project=${live.projectId}`)).text;
  expect(text).toContain('2 addresses in use are not signed');
  expect(text).toContain('To do: </span>Sign your addresses');
  const listed = (await bare.get(`/addresses?project=${live.projectId}`)).text;
  expect(listed.match(/>Not signed</g)).toHaveLength(2);
  const test = `project=${project.projectId}`;
  expect((await bare.get(`/?${test}`)).text).not.toMatch(/in use (is|are) not signed|Sign your addresses/);
  expect((await bare.get(`/addresses?${test}`)).text).not.toContain('igned<');
  await bare.stop();
});

test('a channel ticks the step of notifications', async () => {
  const today = `/?project=${service.project.projectId}`;
  const isDone = async () => (await console_.get(today)).text.includes('Done: </span>Set up alarm notifications');
  expect(await isDone()).toBe(false);
  const path = '/settings/notifications/new/ntfy';
  await submit(path, { name: 'phone', url: 'https://ntfy.example/topic' });
  expect(await isDone()).toBe(true);
});
