import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { authenticateAdminKey } from '../../src/faces/operator/subjects/admin-keys.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { createKey, listKeys, readNewKey } from '../../src/faces/operator/subjects/keys.ts';
import { rotateReceiptKey } from '../../src/faces/operator/subjects/receipts.ts';
import { ANN, joinByPassword, PASSWORD } from '../people/desk.ts';
import { createTestProject } from '../support/service.ts';
import { actorNamed, type Reply, startTestConsole, type TestConsole, tokenIn } from './console.ts';
import { openConsole, SANDBOX } from './open-console.ts';

const RTL = 'قهوة'.repeat(25);
const NEW = '/settings/keys/new';
const NEW_ADMIN = '/settings/admin-keys/new';

let console_: TestConsole;
beforeAll(async () => {
  console_ = await startTestConsole();
  // With only one project there is nothing to choose.
  await createTestProject(console_.service.db);
});
afterAll(() => console_.stop());

async function send(path: string, form: Record<string, string>, headers = {}): Promise<Reply> {
  return console_.post(path, { token: tokenIn(await console_.get(path, headers), path), ...form }, headers);
}

const secretIn = ({ text }: Pick<Reply, 'text'>) => /q(?:t_test|a)_[0-9A-Za-z]{75}/.exec(text)?.[0] ?? '';
const keyIdIn = ({ text }: Pick<Reply, 'text'>) => /(?:key|adm)_[0-9a-z]{26}/.exec(text)?.[0] ?? '';
const now = () => unixMs(console_.service.clock.now());
const audit = async (subject: string) =>
  (await listAudit.run(console_.service, commandActor('test'), readAuditFilter({ subject }))).data.map(
    ({ action, actor }) => `${actor.name} ${action}`,
  );
const statusWith = async (url: string, headers: Record<string, string>) => (await fetch(url, { headers })).status;

test('a key that was made works at once with the API, and is refused at once when it is revoked', async () => {
  const form = { create: 'yes', read: 'yes', name: RTL, expires: '90d', allowedIps: '127.0.0.0/8\r\n\r\n192.0.2.7' };
  const made = await send(NEW, form);
  expect(made.status).toBe(200);
  for (const shown of [
    RTL,
    '127.0.0.0/8, 192.0.2.7/32',
    `curl -sS ${console_.service.url}/v1/invoices`,
    'Copy the key',
  ])
    expect(made.text).toContain(shown);
  const [secret, keyId] = [secretIn(made), keyIdIn(made)];
  const readWith = () => statusWith(`${console_.service.url}/v1/invoices?externalId=none`, { 'X-Api-Key': secret });
  expect(await readWith()).toBe(200);

  const list = await console_.get('/settings/keys');
  expect(list.text).toContain(RTL.slice(0, 50));
  expect(list.text).toContain('<small>create, read</small>');
  expect(await statusWith(`${console_.service.url}/v1/events`, { 'X-Api-Key': secret })).toBe(403);
  expect(list.text).not.toContain(secret.slice(-40));
  const path = `/settings/keys/${keyId}/revoke`;
  expect((await console_.get(path)).text).toMatch(/other keys? in this project stay active/);
  const revoked = await send(path, {});
  expect([revoked.status, revoked.headers.get('location')]).toEqual([
    303,
    expect.stringMatching(/^\/settings\/keys\?.*revoked=1$/),
  ]);
  expect(await readWith()).toBe(401);
  expect((await console_.get('/settings/keys?revoked=1')).text).toContain('The key was revoked.');
  expect((await console_.get(path)).text).toContain('It is already revoked.');
  expect(await audit(keyId)).toEqual(['Ana key.revoked', 'Ana key.created']);
});

test('an admin key that was made works at once within its role and projects, and is revoked', async () => {
  const { projectId } = console_.service.project;
  const made = await send(NEW_ADMIN, { name: 'reports', role: 'viewer', scope: 'some', [projectId]: 'yes' });
  expect(made.text).toContain(`${console_.url}/admin/v1/projects`);
  const [secret, id] = [secretIn(made), keyIdIn(made)];
  expect([secret.slice(0, 3), id.slice(0, 4)]).toEqual(['qa_', 'adm_']);
  const asking = { origin: null, requestId: null, isAllowed: () => true };
  const found = () => authenticateAdminKey({ ...console_.service, now }, secret, asking);
  expect(await found()).toMatchObject({ role: 'viewer', projects: [console_.service.project.id] });
  expect((await console_.get('/settings/admin-keys')).text).toContain('viewer, 1 project');
  const revoked = await send(`/settings/admin-keys/${id}/revoke`, {});
  expect(revoked.headers.get('location')).toBe('/settings/admin-keys?revoked=1');
  expect(await found()).toBe(null);
  expect(await audit(id)).toEqual(['Ana admin-key.revoked', 'Ana admin-key.created']);
});

test('a form that is sent twice makes one key, and the second answer has no secret', async () => {
  const token = tokenIn(await console_.get(NEW), NEW);
  const first = await console_.post(NEW, { token, name: 'once', read: 'yes' });
  const second = await console_.post(NEW, { token, name: 'once', read: 'yes' });
  expect([first.status, second.status]).toEqual([200, 409]);
  expect([secretIn(first).length, secretIn(second)]).toEqual([83, '']);
  const { data } = await listKeys.run({ ...console_.service, now }, commandActor('test'), console_.service.project);
  expect(data.filter(({ name }) => name === 'once')).toHaveLength(1);
  for (const form of [{ name: 'none' }, { name: 'none', token: 'odd' }, { name: 'none', token: '' }]) {
    expect((await console_.post(NEW, form as Record<string, string>)).status).toBe(409);
  }
  expect((await console_.post(NEW, { token, name: 'x' }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
});

const WRONG: [path: string, form: Record<string, string>, says: string][] = [
  [NEW, { name: '' }, '“Name” is empty'],
  [NEW, { name: 'x'.repeat(101) }, 'has 101 characters'],
  [NEW, { name: 'a\nb' }, 'control character'],
  [NEW, { name: 'x', expires: 'soon' }, '“Expires (optional)” is &quot;soon&quot;'],
  [NEW, { name: 'x', expires: '2020-01-01' }, 'which is in the past'],
  [NEW, { name: 'x', allowedIps: '0.0.0.0/0' }, 'allows everyone'],
  [NEW, { name: 'x', allowedIps: '<img src=x>' }, 'is neither an IP address nor a CIDR block'],
  [NEW, { name: 'x' }, '“Permissions” is empty: choose from create, read, events, webhooks'],
  [NEW, { name: 'x', odd: '1' }, 'is not a field of this form'],
  [NEW_ADMIN, { name: 'x', scope: 'all' }, '“Role” is &quot;&quot;: choose viewer, operator, owner'],
  [NEW_ADMIN, { name: 'x', role: 'root', scope: 'all' }, 'choose viewer, operator, owner'],
  [
    NEW_ADMIN,
    { name: 'x', role: 'viewer', scope: 'some' },
    'is limited to selected projects, but no project is selected',
  ],
  [NEW_ADMIN, { name: 'x', role: 'viewer', prj_00000000000000000000000000: 'yes' }, 'is not a field of this form'],
];

test.each(WRONG)('%s with %j makes no key, and says why', async (path, form, says) => {
  const reply = await send(path, form);
  expect([reply.status, reply.text.includes(says), secretIn(reply)]).toEqual([400, true, '']);
  expect(reply.text).not.toContain('<img');
});

test('keys of a project that a person may not see are as unknown', async () => {
  const { service, actors } = console_;
  const other = await createTestProject(service.db);
  actors['guest'] = actorNamed('Guest', { projects: [other.id] });
  const as = { 'x-actor': 'guest' };
  const foreign = keyIdIn(await console_.get(`/settings/keys?project=${service.project.projectId}`));
  for (const keyId of [foreign, 'key_00000000000000000000000000', 'key_x', '%00']) {
    expect((await console_.get(`/settings/keys/${keyId}/revoke`, as)).status, keyId).toBe(404);
    expect((await console_.post(`/settings/keys/${keyId}/revoke`, { token: 'x' }, as)).status, keyId).toBe(404);
  }
  expect((await console_.get(`/settings/keys?project=${service.project.projectId}`, as)).status).toBe(404);
  expect((await console_.get('/settings/admin-keys/adm_00000000000000000000000000/revoke')).status).toBe(404);
  // An owner of one project sees nothing that concerns all projects.
  const own = await console_.get('/settings/keys', as);
  expect([own.status, own.text.includes('Master key')]).toEqual([200, false]);
  for (const path of ['/settings/admin-keys', NEW_ADMIN, '/settings/receipt-key'])
    expect((await console_.get(path, as)).status, path).toBe(403);
  for (const path of [NEW_ADMIN, '/settings/receipt-key'])
    expect((await console_.post(path, { token: 'x' }, as)).status, path).toBe(403);
});

test.each(['vera', 'otto'])('%s, who is no owner, sees no keys and makes and revokes none', async (actor) => {
  const as = { 'x-actor': actor };
  const revoke = `/settings/keys/${keyIdIn(await console_.get('/settings/keys'))}/revoke`;
  for (const path of ['/settings/keys', NEW, revoke, '/settings/admin-keys', NEW_ADMIN, '/settings/receipt-key']) {
    const { status, text } = await console_.get(path, as);
    expect([path, status, text.includes('Only an owner can do this')]).toEqual([path, 403, true]);
  }
  for (const path of [NEW, revoke, NEW_ADMIN, '/settings/receipt-key'])
    expect((await console_.post(path, { token: 'x', name: 'x' }, as)).status, path).toBe(403);
});

test('a list of many keys stays under 30 kB, shows those in use first, and says how many are left', async () => {
  const deps = { ...console_.service, networks: [], now, random: (bytes: number) => randomBytes(bytes) };
  const { projectId } = await createTestProject(console_.service.db);
  for (let n = 0; n < 120; n += 1) {
    const name = `${n} ${String.fromCodePoint(0x4e00 + n * 97)}`.padEnd(100, '漢字仮名交じり文');
    const allowedIps = Array.from({ length: 8 }, (_, ip) => `10.${n}.${ip}.0/24`);
    await createKey.run(deps, commandActor('test'), { ...readNewKey({ name, allowedIps }, now()), projectId });
  }
  const { text } = await console_.get(`/settings/keys?project=${projectId}`);
  expect(text.match(/<tr role="row">/g)?.length).toBeGreaterThan(100);
  expect(text).toMatch(/21 more are not shown: <a href="[^"]*all=yes[^"]*">Show all<\/a>/);
  const all = await console_.get(`/settings/keys?project=${projectId}&all=yes`);
  expect([all.text.match(/<tr role="row">/g)?.length, all.text.includes('not shown')]).toEqual([
    (text.match(/<tr role="row">/g)?.length ?? 0) + 21,
    false,
  ]);
  expect(text).toContain('10.119.0.0/24, 10.119.1.0/24, 10.119.2.0/24, 10.119.3.0/24, 10.119.4.0/24</bdi> and 3 more');
  expect(gzipSync(text).length).toBeLessThan(30_000);
});

test('a new signing key of receipts takes the place of the former one, and the master keys are shown by their ids', async () => {
  const page = await console_.get('/settings/keys');
  expect(page.text).toContain('QUITTANCE_MASTER_KEY');
  expect(page.text).toContain('Replace the master key on the server');
  const done = await send('/settings/receipt-key', {});
  expect([done.status, done.text.includes('instead of')]).toEqual([200, true]);
  const { data } = await listAudit.run(
    console_.service,
    commandActor('test'),
    readAuditFilter({ action: 'receipt-key.rotated' }),
  );
  expect(data[0]?.actor.name).toBe('Ana');
});

test('where the master key of the signing key is lost, that is said, and a new one is made by who confirms it', async () => {
  const desk = await openConsole({ isSandbox: true, isSecure: false });
  const { cookie } = await desk.ask(`/sandbox/${SANDBOX}`);
  await createTestProject(desk.db);
  await rotateReceiptKey({ ...desk.deps, keyRing: createKeyRing([createMasterKey()]) }, ANN);
  const keys = await desk.ask('/settings/keys', { cookie });
  expect(keys.text).toContain('>missing<');
  expect(keys.text).toContain('<a href="/settings/receipt-key">New receipt signing key</a>');
  const path = '/settings/receipt-key';
  const sendWith = async (form: Record<string, string>) => {
    const { text } = await desk.ask(path, { cookie });
    const token =
      /action="\/settings\/receipt-key"><input type="hidden" name="token" value="([^"]+)"/.exec(text)?.[1] ?? '';
    return desk.ask(path, { cookie, form: { token, ...form } });
  };
  const refused = await sendWith({});
  expect([refused.status, refused.text.includes('nothing was changed')]).toEqual([409, true]);
  expect((await sendWith({ isKeyLost: 'yes' })).text).toContain('instead of');
  expect((await desk.ask('/settings/keys', { cookie })).text).not.toContain('>missing<');
  // The field exists only if the key is lost.
  expect((await sendWith({ isKeyLost: 'yes' })).text).toContain('&quot;isKeyLost&quot; is not a field of this form');
});

test('a key is made by who proves again who it is; its secret is on that one page, and nowhere in the database or the log', async () => {
  const desk = await openConsole();
  const { code } = await joinByPassword(desk, 'ann');
  const project = await createTestProject(desk.db);
  const signedIn = await desk.ask('/sign-in', { form: { login: 'ann', password: PASSWORD, code: code() } });
  const { cookie } = signedIn;
  desk.pass(6 * 60_000);
  const path = `${NEW}?project=${project.projectId}`;
  const page = await desk.ask(path, { cookie });
  const token = (reply: { text: string }) => /name="token" value="([^"]+)"/.exec(reply.text)?.[1] ?? '';
  const form = { name: 'shop', create: 'yes', project: project.projectId };
  const asked = await desk.ask(NEW, { cookie, form: { ...form, token: token(page) } });
  expect(asked.status).toBe(200);
  expect(asked.text).toContain('Nothing has been changed yet');
  expect(secretIn(asked)).toBe('');
  const wrong = await desk.ask(NEW, { cookie, form: { ...form, token: token(asked), code: '000000' } });
  expect([wrong.status, secretIn(wrong)]).toEqual([403, '']);
  const made = await desk.ask(NEW, { cookie, form: { ...form, token: token(wrong), code: code() } });
  const secret = secretIn(made);
  expect([made.status, secret.length, made.headers.get('cache-control')]).toEqual([200, 83, 'no-store']);
  // The proof is valid for one key.
  const next = await desk.ask(NEW, { cookie, form: { ...form, token: token(await desk.ask(path, { cookie })) } });
  expect([secretIn(next), next.text.includes('Nothing has been changed yet')]).toEqual(['', true]);

  const tables = await desk.sql(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  const rows: string[] = [];
  for (const { name } of tables) {
    for (const { row } of await desk.sql(`select to_jsonb(t)::text as row from "${name}" t`)) rows.push(row);
  }
  const kept = [...rows, ...desk.lines].join('\n');
  // The non-secret parts of the key are found, which proves that the search works.
  expect(kept).toContain('"key.created"');
  for (const part of [secret, secret.slice(34, 60), Buffer.from(secret).toString('base64').slice(48, 72)])
    expect(kept).not.toContain(part);

  const out = await desk.ask('/sign-out', { form: {}, cookie });
  expect(out.location).toBe('/sign-in');
  expect((await desk.ask('/settings/keys', { cookie })).location).toBe('/sign-in?next=%2Fsettings%2Fkeys');
  const { data } = await listAudit.run(desk.deps, ANN, readAuditFilter({ action: 'key.created' }));
  expect(data.map(({ actor }) => actor)).toEqual([expect.objectContaining({ kind: 'console', name: 'ann' })]);
});
