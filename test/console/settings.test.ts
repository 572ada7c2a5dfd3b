import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_LOGO_BYTES } from '../../src/core/domain/brand/logo.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { NO_ADDRESS } from '../../src/faces/checkout/page/page.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { showProject, updateProject } from '../../src/faces/operator/subjects/projects.ts';
import { LOGOS } from '../support/logos.ts';
import { createTestProject, payableOf, readInvoice } from '../support/service.ts';
import {
  actorNamed,
  type Made,
  newInvoice,
  type Reply,
  startTestConsole,
  type TestConsole,
  tokenIn,
} from './console.ts';
import { openConsole, SANDBOX } from './open-console.ts';

const RTL = 'قهوة'.repeat(25);
const HTML = `<img src=x onerror=alert(1)>"'&`;
const [LOOK, RULES, PREVIEW] = ['/settings/project/look', '/settings/project/rules', '/settings/project/preview'];
const NEW = '/settings/projects/new';
const SAVED = {
  name: 'Heron',
  support: 'help@shop.example',
  returnUrl: 'https://shop.example/a?b=1',
  embedOrigins: 'https://shop.example http://localhost:3000',
  accent: '#123456',
};

let console_: TestConsole;
let invoice: Made;

beforeAll(async () => {
  console_ = await startTestConsole();
  invoice = await newInvoice(console_.service, 'order-1');
  await newInvoice(console_.service, 'order-2');
});
afterAll(() => console_.stop());

async function send(path: string, form: Record<string, string>, headers = {}): Promise<Reply> {
  return console_.post(path, { token: tokenIn(await console_.get(path, headers), path), ...form }, headers);
}
const deps = () => ({ ...console_.service, now: () => unixMs(console_.service.clock.now()) });
const settings = async () => (await showProject.run(deps(), commandActor('test'), console_.service.project)).view;
const setLogo = () =>
  updateProject.run(deps(), commandActor('test'), {
    projectId: console_.service.project.projectId,
    logo: { type: 'image/png', content: LOGOS.png },
  });

test('the index leads to what a role may, and to nothing else', async () => {
  const linksFor = async (actor: string) => {
    const { text } = await console_.get('/settings', { 'x-actor': actor });
    const main = text.slice(text.indexOf('<main'), text.indexOf('</main>'));
    return [...main.matchAll(/href="([^"]+)"/g)].map(([, url]) => url);
  };
  expect(await linksFor('vera')).toEqual(['/settings/project', '/settings/notifications', '/settings/me']);
  expect(await linksFor('otto')).toEqual(['/settings/project', '/settings/notifications', '/settings/me']);
  expect(await linksFor('ana')).toEqual([
    ...['/settings/project', '/settings/keys', NEW, '/settings/admin-keys', '/settings/notifications'],
    ...['/settings/people', '/settings/sessions', '/settings/audit', '/settings/system', '/settings/me'],
  ]);
});

test('what payers see is changed for pages of invoices that there are, and the record has what it was and is', async () => {
  const before = await settings();
  const reply = await send(LOOK, { ...SAVED, accent: '123456' });
  expect(reply.status).toBe(200);
  expect(reply.text).toContain('on every page they open from now on');
  expect(reply.text).not.toContain('New invoices use this');
  const { body } = await readInvoice(console_.service, invoice.invoiceId);
  const page = await (await fetch(body.checkoutUrl)).text();
  for (const shown of ['Heron', 'help@shop.example', 'https://shop.example/a?b=1']) expect(page).toContain(shown);
  const { data } = await listAudit.run(
    console_.service,
    commandActor('test'),
    readAuditFilter({ action: 'project.changed' }),
  );
  expect(data[0]).toMatchObject({
    actor: { kind: 'console', name: 'Ana' },
    detail: { name: { from: before.name, to: 'Heron' }, accent: { from: null, to: '#123456' } },
  });
  expect((await send(LOOK, SAVED)).text).toContain('Nothing to change');
});

test('a field that is left empty takes its setting away, and so does the check of a logo; a name of 100 right-to-left characters stands', async () => {
  await setLogo();
  expect((await send(LOOK, { name: RTL, noLogo: 'yes' })).status).toBe(200);
  const none = { supportContact: null, returnUrl: null, embedOrigins: null, accent: null, logoId: null };
  expect(await settings()).toMatchObject({ name: RTL, ...none });
  for (const path of ['/settings', '/settings/project', LOOK, RULES, PREVIEW])
    expect((await console_.get(path)).text, path).toContain(RTL);
  await send(LOOK, SAVED);
});

test('a logo is chosen in the form, shown in the preview, kept, and refused with its reason', async () => {
  const logo = LOGOS.png.toString('base64url');
  const preview = await console_.post(PREVIEW, { name: 'Heron', logo });
  expect(preview.text).toContain(`data:image/png;base64,${LOGOS.png.toString('base64')}`);
  expect((await settings()).logoId).toBe(null);
  const saved = await send(LOOK, { ...SAVED, logo });
  expect(saved.status).toBe(200);
  expect(saved.text).toContain(`png, ${LOGOS.png.length.toLocaleString('en')} bytes`);
  expect((await settings()).logoId).not.toBe(null);
  // Settings that aren't chosen stay the same.
  expect((await send(LOOK, SAVED)).text).toContain('Nothing to change');
  const wrong = await send(LOOK, { ...SAVED, logo: Buffer.from('<svg/>').toString('base64') });
  expect([wrong.status, wrong.text.includes('“Logo” ')]).toEqual([400, true]);
  const most = Buffer.alloc(MAX_LOGO_BYTES, 0xff).toString('base64url');
  expect((await send(LOOK, { ...SAVED, logo: most })).text).toContain('“Logo” ');
  await send(LOOK, { ...SAVED, noLogo: 'yes' });
});

test('a form says how many open invoices stay as they are, and they do', async () => {
  expect((await console_.get(RULES)).text).toContain('2 open invoices stay payable with their current amounts');
  const was = await settings();
  const rules = { maxSurcharge: '0.02', lifetime: '2h', maxUnpaid: '7', maxUnpaidPerMinute: '' };
  const reply = await send(RULES, { ...rules, policy: 'exact' });
  expect(reply.text).toContain('New invoices use this');
  expect(reply.text).toContain('so every new invoice is refused');
  expect(await settings()).toMatchObject({
    ...{ policy: 'exact', maxSurcharge: '0.020000', lifetimeMs: 7_200_000, maxUnpaid: 7, maxUnpaidPerMinute: null },
    name: was.name,
  });
  expect((await payableOf(console_.service, invoice.invoiceId)).amountMicro).toBe(invoice.amountMicro);
  // The form accepts the values that it shows.
  const shown = await console_.get(RULES);
  const filled = [...shown.text.matchAll(/<input id="(\w+)" name="\w+" value="([^"]*)"/g)].map(([, name, value]) => [
    name ?? '',
    value ?? '',
  ]);
  expect(Object.fromEntries(filled)).toMatchObject({ ...rules, maxSurcharge: '0.02' });
  expect((await send(RULES, { ...Object.fromEntries(filled), policy: 'exact' })).text).toContain('Nothing to change');
  await send(RULES, { policy: 'tail', maxSurcharge: '1', lifetime: '30m' });
  expect((await console_.get(RULES)).text).toContain('value="1"');
});

const WRONG: [path: string, form: Record<string, string>, says: string][] = [
  [LOOK, { name: '' }, '“Name” is empty'],
  [LOOK, { name: 'x'.repeat(101) }, 'has 101 characters'],
  [LOOK, { name: HTML, accent: HTML }, '“Colour” is'],
  [LOOK, { name: 'x', returnUrl: 'javascript:alert(1)' }, 'is not an https:// URL'],
  [LOOK, { name: 'x', returnUrl: 'http://shop.example' }, 'use https://'],
  [LOOK, { name: 'x', support: 'a\u202eb' }, 'reverses the text direction'],
  [LOOK, { name: 'x', policy: 'exact' }, 'is not a field of this form'],
  [
    RULES,
    { policy: 'odd', maxSurcharge: '1', lifetime: '30m' },
    '“Payment matching” is &quot;odd&quot;: choose tail, tail-4, tail-3, exact',
  ],
  [RULES, { policy: 'tail', maxSurcharge: '2', lifetime: '30m' }, 'use 0.0001 to 1 USDT'],
  [RULES, { policy: 'tail-3', maxSurcharge: '0.01', lifetime: '30m' }, 'with the policy tail-3 use 0.1 to 1 USDT'],
  [RULES, { policy: 'tail', maxSurcharge: '1', lifetime: '1m' }, 'use 5m to 30d'],
  [RULES, { policy: 'tail', maxSurcharge: '1', lifetime: '1h', maxUnpaid: '0' }, 'use 1 to 1000000, or none'],
  [RULES, { policy: 'tail' }, '“Invoice lifetime” is &quot;&quot;'],
  [NEW, { name: HTML, network: 'main', maxSurcharge: '1', lifetime: '1h' }, 'choose mainnet, nile, devnet'],
  [NEW, { name: '', network: 'devnet', policy: 'tail', maxSurcharge: '0', lifetime: '1h' }, '“Name” is empty'],
];

test.each(WRONG)('%s with %j changes nothing, and says why beside the form', async (path, form, says) => {
  const before = await settings();
  const reply = await send(path, form);
  expect([reply.status, reply.text.includes(says)]).toEqual([400, true]);
  expect(reply.text).not.toContain('<img');
  expect(await settings()).toEqual(before);
});

test('a form is taken once, from its session, and from no other page', async () => {
  const token = tokenIn(await console_.get(LOOK), LOOK);
  console_.actors['lena'] = actorNamed('Lena');
  for (const headers of [{ 'x-session': '2' }, { 'x-actor': 'lena' }])
    expect((await console_.post(LOOK, { ...SAVED, name: 'Y', token }, headers)).status).toBe(409);
  expect((await console_.post(LOOK, { ...SAVED, name: 'Y', token }, { 'sec-fetch-site': 'cross-site' })).status).toBe(
    403,
  );
  expect((await console_.post(LOOK, { ...SAVED, name: 'Y' })).status).toBe(409);
  expect((await console_.post(LOOK, { ...SAVED, name: 'X', token })).status).toBe(200);
  expect((await console_.post(LOOK, { ...SAVED, name: 'Y', token })).status).toBe(409);
  expect((await settings()).name).toBe('X');
  await send(LOOK, SAVED);
});

test('a project that a person may not see is as unknown, and only an owner changes one', async () => {
  const other = await createTestProject(console_.service.db);
  console_.actors['guest'] = actorNamed('Guest', { projects: [other.id] });
  const { projectId } = console_.service.project;
  for (const path of ['/settings', '/settings/project', LOOK, RULES, PREVIEW]) {
    for (const id of [projectId, 'prj_00000000000000000000000000', '%F0%9F%A7%BE'])
      expect((await console_.get(`${path}?project=${id}`, { 'x-actor': 'guest' })).status, path).toBe(404);
  }
  for (const path of [LOOK, RULES, PREVIEW])
    expect((await console_.post(path, { project: projectId, name: 'x' }, { 'x-actor': 'guest' })).status).toBe(404);
  // The list of projects includes more than the guest may see.
  expect((await console_.get(NEW, { 'x-actor': 'guest' })).status).toBe(403);
  for (const actor of ['vera', 'otto']) {
    const seen = await console_.get('/settings/project', { 'x-actor': actor });
    expect([seen.status, seen.text.includes('Change ')]).toEqual([200, false]);
    for (const path of [LOOK, RULES, NEW]) {
      expect((await console_.get(path, { 'x-actor': actor })).status, path).toBe(403);
      expect((await console_.post(path, { name: 'x' }, { 'x-actor': actor })).status, path).toBe(403);
    }
  }
});

test('the preview looks like the payer’s page, holds nothing that can be paid or sent, and only the console frames it', async () => {
  await setLogo();
  const reply = await console_.get(PREVIEW);
  for (const shown of ['Example', 'Heron', 'help@shop.example', 'Waiting for your payment', 'data:image/png;base64,'])
    expect(reply.text).toContain(shown);
  expect(reply.text).toContain(`<span>${NO_ADDRESS.slice(4, 8)}</span><wbr><span>${NO_ADDRESS.slice(8, 12)}</span>`);
  expect(reply.text).not.toMatch(/<script|<form|<input|href="\/|\/c\//);
  for (const address of console_.service.project.addresses) expect(reply.text).not.toContain(address);
  const policy = reply.headers.get('content-security-policy') ?? '';
  const nonce = /<style nonce="([^"]+)"/.exec(reply.text)?.[1];
  expect(policy).toBe(
    `default-src 'none'; style-src 'nonce-${nonce}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox`,
  );
  expect(reply.headers.get('cache-control')).toBe('no-store');
  for (const path of ['/settings/project', LOOK]) {
    const framing = (await console_.get(path)).headers.get('content-security-policy') ?? '';
    expect(framing, path).toContain("frame-ancestors 'none'; frame-src 'self'");
  }
  expect((await console_.get(RULES)).headers.get('content-security-policy')).not.toContain('frame-src');
});

test('the preview shows what a form would make, changes nothing, and takes it from forms of the console alone', async () => {
  const before = await settings();
  const wanted = { name: `${HTML}${RTL.slice(0, 60)}`, support: HTML, returnUrl: '', accent: 'fc0', noLogo: 'yes' };
  const reply = await console_.post(PREVIEW, wanted);
  expect(reply.status).toBe(200);
  expect(reply.text).toContain('--accent:#876a01');
  expect(reply.text).toContain('&lt;img src=x onerror=alert(1)&gt;');
  expect(reply.text).not.toMatch(/<img|shop\.example/);
  expect(await settings()).toEqual(before);
  const wrong = await console_.post(PREVIEW, { ...wanted, accent: 'blue', returnUrl: 'data:x' });
  expect(wrong.text).toContain('“Colour” is &quot;blue&quot;');
  expect(wrong.text).toContain('“Return link to the shop” is not an https:// URL');
  expect(wrong.text).not.toContain(NO_ADDRESS.slice(4, -6));
  expect((await console_.post(PREVIEW, wanted, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
  expect((await console_.get(`${PREVIEW}?name=x`)).status).toBe(400);
});

test('a first project is made from an empty console, which goes on with the steps that set it up', async () => {
  const desk = await openConsole({ isSandbox: true, isSecure: false });
  const { cookie } = await desk.ask(`/sandbox/${SANDBOX}`);
  const empty = await desk.ask('/', { cookie });
  expect(empty.text).toContain(`href="${NEW}"`);
  const index = await desk.ask('/settings', { cookie });
  expect([index.status, index.text.includes('This project')]).toEqual([200, false]);
  expect((await desk.ask('/settings/keys', { cookie })).text).toContain(`<a href="${NEW}">New project</a>`);
  const form = await desk.ask(NEW, { cookie });
  const token = /name="token" value="([^"]+)"/.exec(form.text)?.[1] ?? '';
  const given = { name: RTL, network: 'devnet', policy: 'tail', maxSurcharge: '0.01', lifetime: '30m' };
  const made = await desk.ask(NEW, { cookie, form: { token, ...given } });
  expect([made.status, made.location]).toEqual([303, expect.stringMatching(/^\/\?project=prj_[0-9a-z]{26}$/)]);
  const today = await desk.ask(made.location ?? '', { cookie });
  expect(today.text).toContain(RTL);
  expect(today.text).toContain('<a href="/addresses/add">Add addresses</a>');
  const [row] = await desk.sql(`select action, acted_by from operator_actions`);
  expect(row).toEqual({ action: 'project.created', acted_by: 'sandbox' });
});

test('whoever may see no project, or may not take the next step, is told whom to ask', async () => {
  console_.actors['new'] = actorNamed('New', { role: 'operator', projects: [] });
  const { text } = await console_.get('/', { 'x-actor': 'new' });
  expect(text).toContain('No projects are visible to you');
  expect(text).not.toContain(NEW);
  const other = await createTestProject(console_.service.db, { addressCount: 0 });
  const today = `/?project=${other.projectId}`;
  expect((await console_.get(today)).text).toContain(`<a href="/addresses/add?project=${other.projectId}">`);
  expect((await console_.get(today, { 'x-actor': 'otto' })).text).toContain(
    'Ask an owner to do this: your role does not allow it.',
  );
});

test('a project is archived and put back; archived it is in no menu, and its pages are there', async () => {
  const { projectId } = await createTestProject(console_.service.db);
  const at = `?project=${projectId}`;
  const click = async (name: string) => {
    const path = `/settings/project/${name}`;
    const token = tokenIn(await console_.get(path + at), path);
    return console_.post(path, { token, project: projectId });
  };
  expect((await console_.get(`/settings/project/archive${at}`)).text).toContain('There are no open invoices');
  const archived = await click('archive');
  expect([archived.status, archived.headers.get('location')]).toEqual([303, `/settings/project${at}`]);
  expect((await console_.get('/settings')).text).toContain('href="/settings/projects"');
  expect((await console_.get('/settings/projects')).text).toContain(`/settings/project${at}`);
  expect((await console_.get('/invoices')).text).not.toContain(projectId);
  expect((await console_.get(`/invoices${at}`)).status).toBe(200);
  expect((await console_.get(`/settings/project${at}`)).text).toContain('it accepts no new invoices');
  expect((await click('unarchive')).status).toBe(303);
  expect((await console_.get('/settings/projects')).text).toContain('No archived projects');
  expect((await console_.get('/invoices')).text).toContain(projectId);
  const refused = await console_.get(`/settings/project/archive${at}`, { 'x-actor': 'otto' });
  expect(refused.status).toBe(403);
});
