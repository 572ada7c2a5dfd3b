import { expect, test } from 'vitest';
import { encodeId } from '../../src/core/domain/ids.ts';
import {
  addPasskey,
  listOwnPasskeys,
  removePasskey,
  requestPasskey,
} from '../../src/faces/operator/subjects/passkeys.ts';
import { changeRole, removePerson } from '../../src/faces/operator/subjects/people.ts';
import {
  endOwnSession,
  endSession,
  findSession,
  listOwnSessions,
  listSessions,
  personActor,
  type Session,
} from '../../src/faces/operator/subjects/sessions.ts';
import { requestStepUp, type SignedAction, startSession, stepUp } from '../../src/faces/operator/subjects/sign-in.ts';
import { createAuthenticator } from './authenticator.ts';
import { ANN, CONSOLE, type Desk, from, HOUR_MS, joinByPasskey, joinByPassword, openDesk, PASSWORD } from './desk.ts';

const DELETE_KEY: SignedAction = { name: 'createKey', input: '{"project":"Shop","name":"web"}' };
const OTHER: SignedAction = { name: 'createKey', input: '{"project":"Shop","name":"evil"}' };

async function sessionOf(desk: Desk, token: string): Promise<Session> {
  const session = await findSession(desk.deps, token);
  if (session === null) throw new Error('the session has ended');
  return session;
}

test('a session ends twelve hours after its last use, and seven days after its start however often it is used', async () => {
  const desk = await openDesk();
  const { token, endsAt } = await joinByPasskey(desk, 'ann');
  expect(endsAt).toBe(desk.deps.now() + 12 * HOUR_MS);
  desk.pass(12 * HOUR_MS - 1);
  for (let passed = 12; passed < 7 * 24; passed += 11) {
    expect(await findSession(desk.deps, token)).not.toBeNull();
    desk.pass(11 * HOUR_MS);
  }
  expect(await findSession(desk.deps, token)).toBeNull();
  const again = await joinByPasskey(desk, 'bert', 'viewer');
  desk.pass(12 * HOUR_MS);
  expect(await findSession(desk.deps, again.token)).toBeNull();
  expect((await listSessions.run(desk.deps, ANN, {})).data).toEqual([]);
});

test('a use is written down once a minute at most', async () => {
  const desk = await openDesk();
  const { token } = await joinByPasskey(desk, 'ann');
  const seen = async () => {
    await findSession(desk.deps, token);
    return (await desk.sql('select seen_at, xmin::text from sessions'))[0];
  };
  const first = await seen();
  desk.pass(59_999);
  expect(await seen()).toEqual(first);
  desk.pass(1);
  expect((await seen()).seen_at.getTime()).toBe(desk.deps.now());
});

test('a change of role ends every session of that person and of nobody else, and the next one has the new role', async () => {
  const desk = await openDesk();
  const owner = await joinByPasskey(desk, 'owner');
  const ann = await joinByPassword(desk, 'ann', 'operator');
  const changed = await changeRole.run(desk.deps, ANN, { person: 'ANN', role: 'viewer', projects: null });
  expect(changed).toMatchObject({ role: 'viewer', endedSessions: 1 });
  expect(await findSession(desk.deps, ann.token)).toBeNull();
  expect(await findSession(desk.deps, owner.token)).not.toBeNull();
  const signIn = { login: 'ann', password: PASSWORD, code: ann.code() };
  expect(await startSession(desk.deps, from(), signIn)).toMatchObject({ kind: 'started', person: { role: 'viewer' } });
});

test('a change of role widens nobody’s projects by the way, and an owner has all', async () => {
  const desk = await openDesk();
  await joinByPasskey(desk, 'owner');
  await desk.invite('ann', 'viewer');
  const project = '00000000-0000-7000-8000-000000000001';
  await desk.sql("insert into projects (id, name, network) values ($1, 'shop', 'devnet')", [project]);
  const read = (rights: { role: string; projectIds?: string[]; allProjects?: boolean }) =>
    changeRole.read({ person: 'ann', ...rights }, desk.deps.now());
  const change = (rights: Parameters<typeof read>[0]) => changeRole.run(desk.deps, ANN, read(rights));
  const projectIds = [encodeId('prj', project)];
  expect(await change({ role: 'viewer', projectIds })).toMatchObject({ projects: projectIds });
  expect(await change({ role: 'operator' })).toMatchObject({ role: 'operator', projects: projectIds });
  expect(await change({ role: 'operator', allProjects: true })).toMatchObject({ projects: null });
  await change({ role: 'viewer', projectIds });
  expect(await change({ role: 'owner' })).toMatchObject({ role: 'owner', projects: null });
  expect(() => read({ role: 'owner', projectIds })).toThrow('was not changed');
});

test('a removed person is signed in nowhere, and its sessions are gone at once', async () => {
  const desk = await openDesk();
  await joinByPasskey(desk, 'owner');
  const ann = await joinByPassword(desk, 'ann', 'operator');
  await removePerson.run(desk.deps, ANN, { person: encodeId('usr', ann.person.id) });
  expect(await findSession(desk.deps, ann.token)).toBeNull();
  const signIn = { login: 'ann', password: PASSWORD, code: ann.code() };
  expect(await startSession(desk.deps, from(), signIn)).toEqual({ kind: 'refused' });
  await expect(changeRole.run(desk.deps, ANN, { person: 'ann', role: 'owner', projects: null })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
});

test('the last owner is neither removed nor demoted, not even by two who do it to each other at the same time', async () => {
  const desk = await openDesk();
  await joinByPasskey(desk, 'ann');
  const demote = (person: string) => changeRole.run(desk.deps, ANN, { person, role: 'viewer', projects: null });
  await expect(demote('ann')).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('last owner'),
  });
  await expect(removePerson.run(desk.deps, ANN, { person: 'ann' })).rejects.toMatchObject({ code: 'CONFLICT' });
  // Nor while the other one hasn't redeemed the invitation.
  await desk.invite('bert');
  await expect(removePerson.run(desk.deps, ANN, { person: 'ann' })).rejects.toThrow('last owner who can sign in');
  await joinByPasskey(desk, 'cleo');
  const both = await Promise.allSettled([demote('ann'), removePerson.run(desk.deps, ANN, { person: 'cleo' })]);
  expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  // Not even around the program.
  await desk.sql("update people set removed_at = now() where login = 'bert'");
  await expect(
    desk.sql("update people set role = 'viewer' where role = 'owner' and removed_at is null"),
  ).rejects.toThrow('is the last owner');
});

test('a session is ended by its person or by an owner, and not by another person', async () => {
  const desk = await openDesk();
  const ann = await joinByPasskey(desk, 'ann');
  const bert = await joinByPassword(desk, 'bert', 'viewer');
  const actorOf = (person: Session['person']) => personActor(person, from());
  const sessionId = encodeId('ses', ann.sessionId);
  await expect(endOwnSession.run(desk.deps, actorOf(bert.person), { sessionId })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  expect(await findSession(desk.deps, ann.token)).not.toBeNull();
  expect((await listOwnSessions.run(desk.deps, actorOf(bert.person), {})).data.map(({ login }) => login)).toEqual([
    'bert',
  ]);
  expect((await listSessions.run(desk.deps, ANN, { person: 'ann' })).data).toMatchObject([
    { sessionId, proof: 'passkey' },
  ]);
  expect(await endOwnSession.run(desk.deps, actorOf(ann.person), { sessionId })).toEqual({
    sessionId,
    status: 'ended',
  });
  expect(await findSession(desk.deps, ann.token)).toBeNull();
  await endSession.run(desk.deps, ANN, { sessionId: encodeId('ses', bert.sessionId) });
  expect(await findSession(desk.deps, bert.token)).toBeNull();
  await expect(endSession.run(desk.deps, ANN, { sessionId })).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a passkey steps a session up for five minutes, by a signature for this action in this session', async () => {
  const desk = await openDesk();
  const { token, key } = await joinByPasskey(desk, 'ann');
  const session = await sessionOf(desk, token);
  expect(session.steppedUpUntil).toBeNull();
  const { passkey: request } = await requestStepUp(desk.deps, session, DELETE_KEY);
  if (request === null) throw new Error('no passkey is asked for');
  expect(request.allowCredentials).toMatchObject([{ id: key.id }]);
  const proof = { passkey: key.sign(request) };
  expect(await stepUp(desk.deps, personActor(session.person, from()), { session, action: OTHER, proof })).toBeNull();
  expect((await sessionOf(desk, token)).steppedUpUntil).toBeNull();
  const until = desk.deps.now() + 300_000;
  expect(await stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof })).toEqual({
    steppedUpUntil: until,
  });
  expect(
    await stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof }),
  ).toBeNull();
  expect((await sessionOf(desk, token)).steppedUpUntil).toBe(until);
  desk.pass(300_000);
  expect((await sessionOf(desk, token)).steppedUpUntil).toBeNull();
});

test('a step-up is not taken from another session, another person, a sign-in, without user verification, or after the session has ended', async () => {
  const desk = await openDesk();
  const ann = await joinByPasskey(desk, 'ann');
  const bert = await joinByPasskey(desk, 'bert');
  const session = await sessionOf(desk, ann.token);
  const theirs = await sessionOf(desk, bert.token);
  const requestOf = async (of: Session) => {
    const { passkey } = await requestStepUp(desk.deps, of, DELETE_KEY);
    if (passkey === null) throw new Error('no passkey is asked for');
    return passkey;
  };
  const own = await requestOf(session);
  const wrong = [
    ann.key.sign(await requestOf(theirs)),
    bert.key.sign(own),
    ann.key.sign(own, { isVerified: false }),
    ann.key.sign(own, { origin: 'https://evil.example' }),
    ann.key.sign({ challenge: 'AAAA' }),
  ];
  for (const passkey of wrong) {
    expect(
      await stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof: { passkey } }),
    ).toBeNull();
  }
  const passkey = ann.key.sign(own);
  await endSession.run(desk.deps, ANN, { sessionId: encodeId('ses', session.id) });
  expect(
    await stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof: { passkey } }),
  ).toBeNull();
});

test('a code steps a session up once, and the one that has signed in does not', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  const used = code();
  const started = await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code: used });
  if (started.kind !== 'started') throw new Error(started.kind);
  const session = await sessionOf(desk, started.token);
  expect(await requestStepUp(desk.deps, session, DELETE_KEY)).toEqual({ passkey: null, hasCode: true });
  const by = (text: string) =>
    stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof: { code: text } });
  expect(await by(used)).toBeNull();
  expect(await by('')).toBeNull();
  const both = await Promise.all([by(code(1)), by(code(1))]);
  expect(both.filter((each) => each !== null)).toHaveLength(1);
});

test('whoever has stolen a session guesses ten codes and no more', async () => {
  const desk = await openDesk();
  const { token, code } = await joinByPassword(desk, 'ann');
  const session = await sessionOf(desk, token);
  const by = (text: string) =>
    stepUp(desk.deps, personActor(session.person, from()), { session, action: DELETE_KEY, proof: { code: text } });
  const wrong = code() === '000000' ? '000001' : '000000';
  expect(await Promise.all(Array.from({ length: 12 }, () => by(wrong)))).toEqual(Array(12).fill(null));
  expect(await by(code())).toBeNull();
});

test('a person adds passkeys and removes them, but not the last thing that it signs in with', async () => {
  const desk = await openDesk();
  const { token, key } = await joinByPasskey(desk, 'ann');
  const session = await sessionOf(desk, token);
  const actor = personActor(session.person, from());
  const request = await requestPasskey(desk.deps, session);
  if (request === null) throw new Error('no passkey is offered');
  expect(request.excludeCredentials).toMatchObject([{ id: key.id }]);
  await expect(removePasskey.run(desk.deps, actor, { passkeyId: key.id })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  const second = createAuthenticator(CONSOLE);
  const odd = second.create(request, { isVerified: false });
  await expect(addPasskey.run(desk.deps, actor, { passkey: odd, name: 'safe' })).rejects.toMatchObject({
    field: 'passkey',
  });
  const passkey = second.create(request);
  await addPasskey.run(desk.deps, actor, { passkey, name: 'safe' });
  await expect(addPasskey.run(desk.deps, actor, { passkey, name: 'safe' })).rejects.toMatchObject({
    field: 'passkey',
  });
  await removePasskey.run(desk.deps, actor, { passkeyId: key.id });
  expect((await listOwnPasskeys.run(desk.deps, actor, {})).data).toMatchObject([
    { passkeyId: second.id, name: 'safe' },
  ]);
  const bert = await joinByPasskey(desk, 'bert', 'viewer');
  const theirs = personActor(bert.person, from());
  await expect(removePasskey.run(desk.deps, theirs, { passkeyId: second.id })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  await expect(listOwnPasskeys.run(desk.deps, ANN, {})).rejects.toMatchObject({ code: 'NOT_FOUND' });
  const rows = "select acted_by, detail from operator_actions where action like 'passkey.%' order by seq";
  expect(await desk.sql(rows)).toEqual([
    { acted_by: 'ann', detail: { name: 'safe' } },
    { acted_by: 'ann', detail: { left: 1 } },
  ]);
});

test('who did what to whom, from where, is recorded without a secret', async () => {
  const desk = await openDesk();
  const { token, key, person } = await joinByPasskey(desk, 'ann');
  const session = await sessionOf(desk, token);
  const { passkey: request } = await requestStepUp(desk.deps, session, DELETE_KEY);
  const proof = { passkey: key.sign(request ?? { challenge: '' }) };
  await stepUp(desk.deps, personActor(person, { ...from(), requestId: 'req_1' }), {
    session,
    action: DELETE_KEY,
    proof,
  });
  const rows = await desk.sql(
    'select actor_kind, actor_id, acted_by, origin, request_id, action, subject, detail from operator_actions order by seq',
  );
  const [usr, ses] = [encodeId('usr', person.id), encodeId('ses', session.id)];
  const own = { actor_kind: 'console', actor_id: person.id, acted_by: 'ann', origin: '203.0.113.7' };
  expect(rows).toMatchObject([
    {
      actor_kind: 'cli',
      acted_by: 'ann',
      action: 'user.invited',
      subject: usr,
      detail: { login: 'ann', role: 'owner' },
    },
    { ...own, action: 'session.started', subject: ses, detail: { proof: 'passkey' } },
    { ...own, action: 'user.joined', subject: usr, detail: { kind: 'invite', factor: 'passkey' } },
    {
      ...own,
      request_id: 'req_1',
      action: 'session.stepped-up',
      subject: ses,
      detail: { for: 'createKey', proof: 'passkey' },
    },
  ]);
  for (const secret of [token, PASSWORD]) expect(JSON.stringify(rows)).not.toContain(secret);
});

test('sessions, invitations and challenges of long ago are deleted when somebody signs in', async () => {
  const desk = await openDesk();
  const { code } = await joinByPassword(desk, 'ann');
  await joinByPasskey(desk, 'keyed', 'viewer');
  desk.pass(91 * 24 * HOUR_MS);
  expect((await startSession(desk.deps, from(), { login: 'ann', password: PASSWORD, code: code() })).kind).toBe(
    'started',
  );
  const [left] = await desk.sql(
    `select (select count(*)::int from sessions) as sessions, (select count(*)::int from invitations) as invitations,
       (select count(*)::int from spent_challenges) as challenges`,
  );
  expect(left).toEqual({ sessions: 1, invitations: 0, challenges: 0 });
});
