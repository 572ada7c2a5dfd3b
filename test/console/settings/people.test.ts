import { request } from 'undici';
import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { listAudit, readAuditFilter } from '../../../src/faces/operator/subjects/audit.ts';
import { ANN, CONSOLE, from, joinByPasskey, joinByPassword } from '../../people/desk.ts';
import { createTestProject } from '../../support/service.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf, formOf, send, sendWithCode } from './ask-again.ts';

const NEW = '/settings/people/new';

/** An owner who is signed in with a password and an app, and two shops, one with a right-to-left name of 100 letters. */
async function openOwned() {
  const desk = await openConsole();
  const [shop, other] = [await createTestProject(desk.db), await createTestProject(desk.db)];
  await desk.sql('update projects set name = $2 where id = $1', [other.id, 'م'.repeat(100)]);
  const ann = await joinByPassword(desk, 'ann');
  const browser = { ask: desk.ask, cookie: cookieOf(ann.token) };
  const idOf = async (login: string) => {
    const [row] = await desk.sql('select id from people where login = $1 and removed_at is null', [login]);
    return encodeId('usr', row.id);
  };
  const recorded = async (action: string) =>
    (await listAudit.run(desk, ANN, readAuditFilter({ action }))).data.map(({ actor, subject, detail }) => ({
      ...{ by: actor.name, subject, detail },
    }));
  return { ...desk, ann, browser, idOf, recorded, shop, other };
}

test('an invitation takes a proof, shows its link once, and makes a person of that role and those projects alone', async () => {
  const { browser, ask, ann, idOf, recorded, shop } = await openOwned();
  const filled = {
    login: 'Bob@Example.com',
    name: 'ב'.repeat(100),
    role: 'operator',
    scope: 'some',
    [shop.projectId]: 'yes',
  };
  const asked = await send(browser, NEW, filled);
  expect(asked.status).toBe(200);
  expect(asked.text).toContain('Confirm this change');
  expect(await recorded('user.invited')).toHaveLength(1);
  const made = await ask(NEW, { cookie: browser.cookie, form: { ...formOf(asked, NEW, 'code'), code: ann.code() } });
  expect(made.status).toBe(200);
  const [link = ''] = /https:[^<"]+\/invitation\/[\w-]{43}/.exec(made.text) ?? [];
  expect(link).toMatch(new RegExp(`^${CONSOLE}/`));
  expect(made.text).toContain(`data-copy="${link}"`);
  expect(made.text).toContain('Send this link only to that person');
  const opened = await ask(new URL(link).pathname);
  expect([opened.status, opened.text.includes('You are invited as <strong>operator</strong>')]).toEqual([200, true]);
  const bob = await idOf('bob@example.com');
  expect((await recorded('user.invited'))[0]).toEqual({
    ...{ by: 'ann', subject: bob },
    detail: { login: 'bob@example.com', name: 'ב'.repeat(100), role: 'operator', projects: [shop.projectId] },
  });
  for (const path of ['/settings/people', `/settings/people/${bob}`]) {
    const { status, text } = await ask(path, { cookie: browser.cookie });
    expect([status, text.includes('bob@example.com'), text.includes('/invitation/')]).toEqual([200, true, false]);
    expect(text).toContain('Test shop');
    expect(text).toContain('invited</span> until');
  }
});

test('no header of a request changes where a link leads', async () => {
  const { browser, ann, url, pass } = await openOwned();
  const made = await sendWithCode(browser, NEW, ann.code(), { login: 'bob', role: 'viewer', scope: 'all' });
  expect(made.text).toContain(`${CONSOLE}/invitation/`);

  pass(30_000);
  const asked = await send(browser, NEW, { login: 'carl', role: 'viewer', scope: 'all' });
  const form = { ...formOf(asked, NEW, 'code'), code: ann.code() };
  const { statusCode, body } = await request(url + NEW, {
    method: 'POST',
    headers: {
      ...{ host: 'evil.example', 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' },
      ...{ cookie: browser.cookie, origin: CONSOLE, 'sec-fetch-site': 'same-origin' },
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(form).toString(),
  });
  const text = await body.text();
  expect([statusCode, text.includes(`${CONSOLE}/invitation/`), text.includes('evil')]).toEqual([200, true, false]);
});

test('nobody gets all projects by ticking none, and what is wrong is told beside the form', async () => {
  const { browser, recorded, shop } = await openOwned();
  const right = { login: 'bob', role: 'viewer', scope: 'some', [shop.projectId]: 'yes' };
  const cases: [Record<string, string>, string][] = [
    [{ login: '' }, 'use an e-mail address'],
    [{ login: 'a b' }, 'use an e-mail address'],
    [{ login: 'ü@example.com' }, 'use an e-mail address'],
    [{ name: 'x'.repeat(101) }, '“Name (optional)”'],
    [{ role: 'god' }, 'choose viewer, operator, owner'],
    [{ role: 'owner' }, 'who can see all projects'],
    [{ scope: 'all' }, 'some projects are selected'],
    [{ [shop.projectId]: '' }, 'no project is selected'],
    [{ scope: '' }, '“Projects”'],
    [{ scope: 'none' }, '“Projects”'],
  ];
  for (const [wrong, says] of cases) {
    const { status, text } = await send(browser, NEW, { ...right, ...wrong });
    expect([wrong, status, text.includes(says)]).toEqual([wrong, 400, true]);
  }
  const foreign = { [encodeId('prj', '00000000-0000-7000-8000-000000000000')]: 'yes' };
  expect((await send(browser, NEW, { ...right, ...foreign })).status).toBe(400);
  expect(await recorded('user.invited')).toHaveLength(1);
});

test('a login that is there is refused after the proof, with a link to the people', async () => {
  const { browser, ann } = await openOwned();
  const { status, text } = await sendWithCode(browser, NEW, ann.code(), { login: 'ann', role: 'viewer', scope: 'all' });
  expect([status, text.includes('ann already exists')]).toEqual([409, true]);
  expect(text).toContain('href="/settings/people"');
});

test('another role says how many sessions end, ends them, and keeps the projects that stay ticked', async () => {
  const desk = await openOwned();
  const { ask, browser, ann, idOf, recorded, shop, other } = desk;
  const bob = await joinByPassword(desk, 'bob', 'viewer');
  const path = `/settings/people/${await idOf('bob')}/role`;
  const page = await ask(path, { cookie: browser.cookie });
  expect(page.text).toContain('1 session ends immediately');
  expect((await ask('/', { cookie: cookieOf(bob.token) })).status).toBe(200);
  const changed = await sendWithCode(browser, path, ann.code(), {
    role: 'operator',
    scope: 'some',
    [other.projectId]: 'yes',
  });
  expect([changed.status, changed.location]).toEqual([303, `/settings/people/${await idOf('bob')}?changed=1`]);
  expect((await ask('/', { cookie: cookieOf(bob.token) })).location).toBe('/sign-in');
  const after = await ask(path, { cookie: browser.cookie });
  expect(after.text).toContain(`name="${other.projectId}" value="yes" checked`);
  expect(after.text).toContain(`name="${shop.projectId}" value="yes">`);
  expect((await recorded('user.changed'))[0]?.detail).toMatchObject({
    ...{ login: 'bob', from: 'viewer', to: 'operator', toProjects: [other.projectId], endedSessions: 1 },
  });
});

test('a reset takes away what somebody signs in with, and a removal the person; both say what goes', async () => {
  const desk = await openOwned();
  const { ask, browser, ann, idOf, recorded, pass } = desk;
  const bob = await joinByPassword(desk, 'bob', 'viewer');
  const at = `/settings/people/${await idOf('bob')}`;
  const page = await ask(`${at}/reset`, { cookie: browser.cookie });
  expect(page.text).toContain('password and app, 10 recovery codes');
  const reset = await sendWithCode(browser, `${at}/reset`, ann.code());
  expect(reset.text).toContain(`${CONSOLE}/invitation/`);
  expect((await ask('/', { cookie: cookieOf(bob.token) })).location).toBe('/sign-in');
  const carl = await joinByPasskey(desk, 'carl', 'viewer');
  const away = `/settings/people/${await idOf('carl')}/remove`;
  expect((await ask(away, { cookie: browser.cookie })).text).toContain('1 passkey');
  pass(30_000);
  const removed = await sendWithCode(browser, away, ann.code());
  expect([removed.status, removed.location]).toEqual([303, '/settings/people?removed=1']);
  expect((await ask('/', { cookie: cookieOf(carl.token) })).location).toBe('/sign-in');
  const list = await ask('/settings/people', { cookie: browser.cookie });
  expect([list.text.includes('carl'), list.text.includes('bob')]).toEqual([false, true]);
  expect((await ask(away, { cookie: browser.cookie })).status).toBe(404);
  expect([await recorded('user.reset'), await recorded('user.removed')]).toMatchObject([
    [{ by: 'ann' }],
    [{ by: 'ann' }],
  ]);
});

test('the last owner who can sign in is neither removed nor demoted, in the words of the use case', async () => {
  const { browser, ann, idOf, recorded, ask, pass } = await openOwned();
  const at = `/settings/people/${await idOf('ann')}`;
  const removed = await sendWithCode(browser, `${at}/remove`, ann.code());
  expect([removed.status, removed.text.includes('ann is the last owner')]).toEqual([409, true]);
  expect(removed.text).toContain(`href="${NEW}"`);
  pass(30_000);
  const demoted = await sendWithCode(browser, `${at}/role`, ann.code(), { role: 'viewer', scope: 'all' });
  expect([demoted.status, demoted.text.includes('ann is the last owner')]).toEqual([409, true]);
  expect((await ask('/settings/people', { cookie: browser.cookie })).status).toBe(200);
  expect([...(await recorded('user.removed')), ...(await recorded('user.changed'))]).toEqual([]);
});

test('an unknown person is not found, whatever is asked of it', async () => {
  const { browser, ask } = await openOwned();
  for (const id of [encodeId('usr', '00000000-0000-7000-8000-000000000000'), 'usr_x', 'ann', '%00', 'prj_x']) {
    for (const more of ['', '/role', '/reset', '/remove']) {
      const { status } = await ask(`/settings/people/${id}${more}`, { cookie: browser.cookie });
      expect([id, more, status]).toEqual([id, more, 404]);
    }
  }
});

test('an owner sees who is signed in, by which browser and from where, and ends a session in the middle of a form', async () => {
  const desk = await openOwned();
  const { ask, browser, ann, recorded } = desk;
  const odd = { ...from('198.51.100.9'), userAgent: `<b>${'ع'.repeat(300)}` };
  const bob = await joinByPassword(desk, 'bob', 'operator', odd);
  const fox = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' };
  const signIn = { login: 'ann', password: 'a heron stands in the reeds', code: ann.code() };
  await ask('/sign-in', { form: signIn, headers: fox });
  const form = await ask('/invoices/new', { cookie: cookieOf(bob.token) });
  const list = await ask('/settings/sessions', { cookie: browser.cookie });
  for (const shown of ['198.51.100.9', 'Firefox, Linux', '&lt;b&gt;', 'This session', 'by password and code']) {
    expect(list.text).toContain(shown);
  }
  const end = `/settings/sessions/${encodeId('ses', bob.sessionId)}/end`;
  const done = await ask(end, { cookie: browser.cookie, form: formOf(list, end) });
  expect([done.status, done.location]).toEqual([303, '/settings/sessions?ended=1']);
  const late = { ...formOf(form, '/invoices/new'), amount: '1', externalId: 'x' };
  const sent = await ask('/invoices/new', { cookie: cookieOf(bob.token), form: late });
  expect([sent.status, sent.text.includes('Your session has ended')]).toEqual([401, true]);
  expect(await desk.sql('select id from invoices')).toEqual([]);
  expect((await recorded('session.ended'))[0]).toMatchObject({ by: 'ann' });
  const again = await ask(end, { cookie: browser.cookie, form: formOf(list, end) });
  expect([again.status, again.text.includes('was already sent')]).toEqual([409, true]);
  for (const id of ['ses_x', encodeId('ses', '00000000-0000-7000-8000-000000000000')]) {
    const form = { token: formOf(list, end)['token'] ?? '' };
    expect((await ask(`/settings/sessions/${id}/end`, { cookie: browser.cookie, form })).status).toBe(409);
  }
});
