import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { joinByPasskey } from '../../people/desk.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf, formOf } from './ask-again.ts';

const OWNERS = [
  '/settings/people',
  '/settings/people/new',
  '/settings/sessions',
  '/settings/system',
  '/settings/doctor',
];
const AUDIT = ['/settings/audit', '/settings/audit.csv', '/settings/audit.json', '/settings/audit/verification'];
const EVERYBODY = ['/settings/me', '/settings/me/passkeys/new'];

test('the account is everybody’s, all other pages are the owners’, and nobody’s who is not signed in', async () => {
  const desk = await openConsole();
  const people = {
    owner: await joinByPasskey(desk, 'ann', 'owner'),
    operator: await joinByPasskey(desk, 'otto', 'operator'),
    viewer: await joinByPasskey(desk, 'vera', 'viewer'),
  };
  const { person, sessionId, key } = people.viewer;
  const at = `/settings/people/${encodeId('usr', person.id)}`;
  const ofPerson = [at, `${at}/role`, `${at}/reset`, `${at}/remove`];
  const end = `/settings/sessions/${encodeId('ses', sessionId)}/end`;
  for (const [role, { token }] of Object.entries(people)) {
    const cookie = cookieOf(token);
    for (const path of [...OWNERS, ...AUDIT, ...ofPerson]) {
      const { status, text } = await desk.ask(path, { cookie });
      expect([role, path, status]).toEqual([role, path, role === 'owner' ? 200 : 403]);
      if (role !== 'owner') expect(text).toContain('Only an owner can do this');
    }
    for (const path of EVERYBODY)
      expect([role, path, (await desk.ask(path, { cookie })).status]).toEqual([role, path, 200]);
    if (role === 'owner') continue;
    for (const path of ['/settings/people/new', ...ofPerson.slice(1), end]) {
      const { status } = await desk.ask(path, { cookie, form: { token: 'x' } });
      expect([role, path, status]).toEqual([role, path, 403]);
    }
  }
  const foreign = `/settings/me/passkeys/${key.id}/remove`;
  for (const { token } of [people.owner, people.operator]) {
    expect((await desk.ask(foreign, { cookie: cookieOf(token) })).status).toBe(404);
  }
  const known = [...OWNERS, ...AUDIT, ...ofPerson, ...EVERYBODY, foreign];
  for (const path of known) {
    const { status, location } = await desk.ask(path);
    expect([path, status, location]).toEqual([path, 303, `/sign-in?${new URLSearchParams({ next: path })}`]);
  }
  for (const path of ['/settings/people/new', ...ofPerson.slice(1), end, foreign, '/settings/me/passkeys/new']) {
    const { status, location } = await desk.ask(path, { form: {} });
    expect([path, status, location]).toEqual([path, 303, '/sign-in']);
  }
  expect(await desk.sql('select id from people where removed_at is not null')).toEqual([]);
});

test('no form of the settings is taken from another page', async () => {
  const desk = await openConsole();
  const ann = await joinByPasskey(desk, 'ann');
  const cookie = cookieOf(ann.token);
  const all = '/settings/me/sessions/end-others';
  const own = `/settings/me/sessions/${encodeId('ses', ann.sessionId)}/end`;
  const page = await desk.ask('/settings/me', { cookie });
  for (const path of [own, all, '/settings/people/new', '/settings/me/passkeys/new']) {
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' };
    const { status } = await desk.ask(path, { cookie, headers, form: formOf(page, own) });
    expect([path, status]).toEqual([path, 403]);
  }
  expect((await desk.ask('/settings/me', { cookie })).status).toBe(200);
});
