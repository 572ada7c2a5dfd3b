import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AppError } from '../../src/core/domain/errors.ts';
import { toIso, unixMs } from '../../src/core/domain/time.ts';
import { type Actor, ROLES, type Role } from '../../src/faces/operator/actor.ts';
import { parseCidr } from '../../src/faces/operator/input/readers.ts';
import { enableAdapter } from '../../src/faces/operator/subjects/adapters.ts';
import { authenticateAdminKey, createAdminKeyOperation } from '../../src/faces/operator/subjects/admin-keys.ts';
import { createKey } from '../../src/faces/operator/subjects/keys.ts';
import { changeRole, invitePerson, resetPerson } from '../../src/faces/operator/subjects/people.ts';
import { createAddressList } from '../../src/faces/web/client-address.ts';
import { operationDeps } from '../console/operation-deps.ts';
import { ANN, openDesk } from '../people/desk.ts';
import { createTestProject } from '../support/service.ts';

const HOUR_MS = 3_600_000;
const RUNS = { numRuns: 150 };

/** The addresses of a small network, so that all of them can be tested. */
const ADDRESSES = [...Array(32).keys()].map((last) => `192.0.2.${last}`);
const cidr = fc.tuple(fc.integer({ min: 0, max: 31 }), fc.integer({ min: 26, max: 32 })).map(([last, bits]) => {
  const parsed = parseCidr(`192.0.2.${last}/${bits}`);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.cidr;
});
const odd = fc.constantFrom('2001:db8::/32', '::ffff:192.0.2.1/128', '0.0.0.0/1', '::/1');
const limits = {
  role: fc.constantFrom(...ROLES),
  /** Indexes of two projects; null means all. */
  projects: fc.option(fc.subarray([0, 1], { minLength: 1 }), { nil: null }),
  hours: fc.option(fc.integer({ min: 1, max: 4 }), { nil: null }),
  cidrs: fc.option(fc.array(fc.oneof({ weight: 4, arbitrary: cidr }, odd), { minLength: 1, maxLength: 3 }), {
    nil: null,
  }),
};
const wanted = fc.record(limits);
type Wanted = typeof wanted extends fc.Arbitrary<infer Value> ? Value : never;

async function open() {
  const desk = await openDesk();
  const projects = [await createTestProject(desk.db), await createTestProject(desk.db)];
  const { now } = desk.deps;
  const operating = operationDeps(desk.deps);
  const idsOf = ({ projects: which }: Wanted) => which?.map((index) => projects[index]?.projectId ?? '');
  const inputOf = ({ role, hours, cidrs, ...rest }: Wanted) => ({
    ...{ name: 'key', role, projects: idsOf({ role, hours, cidrs, ...rest }) },
    expires: hours === null ? undefined : toIso(unixMs(now() + hours * HOUR_MS)),
    allowedIps: cidrs ?? undefined,
  });
  const createAdminKey = (actor: Actor, key: Wanted) =>
    createAdminKeyOperation.run(operating, actor, createAdminKeyOperation.read(inputOf(key), now()));
  /** Returns the actor of a key created with a command. */
  const holderOf = async (key: Wanted): Promise<Actor> => {
    const { adminKey } = await createAdminKey(ANN, key);
    const asking = { isAllowed: () => true, origin: '192.0.2.1', requestId: null };
    const actor = await authenticateAdminKey({ db: desk.db, now }, adminKey, asking);
    if (actor === null) throw new Error('the key is refused');
    return actor;
  };
  const count = async () =>
    (
      await desk.sql(
        'select (select count(*) from admin_keys) + (select count(*) from api_keys) + (select count(*) from invitations) as n',
      )
    )[0].n;
  return { ...desk, operating, projects, inputOf, createAdminKey, holderOf, count };
}

const covers = (own: Wanted['cidrs'], given: Wanted['cidrs']) => {
  if (own === null) return true;
  if (given === null) return false;
  const [outer, inner] = [createAddressList(own), createAddressList(given)];
  const others = ['198.51.100.1', '10.0.0.1', '2001:db8::1', '2001:db9::1', '1::'];
  return [...ADDRESSES, ...others].every((ip) => !inner(ip) || outer(ip));
};

/** Returns the fields that give more than the maker has, calculated independently of the program. */
function excess(own: Wanted, given: Wanted): string[] {
  const isMore = {
    role: ROLES.indexOf(given.role) > ROLES.indexOf(own.role),
    projects:
      own.projects !== null &&
      (given.projects === null || given.projects.some((each) => !own.projects?.includes(each))),
    expires: own.hours !== null && (given.hours === null || given.hours > own.hours),
    allowedIps: !covers(own.cidrs, given.cidrs),
  };
  return Object.entries(isMore).flatMap(([field, is]) => (is ? [field] : []));
}

/** Returns the fields that a refusal names, or `null` if the key was created. A project that the maker can't see is unknown to it. */
async function refusedFields(work: () => Promise<unknown>): Promise<string[] | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'NOT_FOUND') return ['projects'];
    return error.problems.map(({ subject }) => String(subject));
  }
}

test('an admin key makes no admin key with more than it has, and a refusal names each field and stores nothing', async () => {
  const desk = await open();
  const seen = { made: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(wanted, wanted, async (own, given) => {
      const actor = await desk.holderOf(own);
      const [before, more] = [await desk.count(), excess(own, given)];
      const refused = await refusedFields(() => desk.createAdminKey(actor, given));
      expect(Number(await desk.count()) - Number(before)).toBe(refused === null ? 1 : 0);
      seen[refused === null ? 'made' : 'refused'] += 1;
      // All fields are reported at once, except that an unknown project is reported alone.
      if (more.length > 0) expect(refused).not.toBeNull();
      for (const field of refused ?? []) if (field !== 'allowedIps') expect(more).toContain(field);
    }),
    RUNS,
  );
  // The frequencies are random, but both outcomes must occur.
  expect(Math.min(seen.made, seen.refused)).toBeGreaterThan(0);
});

test('an admin key makes no key of a project beyond its own projects, end and addresses', async () => {
  const desk = await open();
  const seen = { made: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(wanted, wanted, async (own, given) => {
      const actor = await desk.holderOf({ ...own, role: 'owner' });
      const [index = 0] = given.projects ?? [];
      const { name, expires, allowedIps } = desk.inputOf(given);
      const input = { projectId: desk.projects[index]?.projectId, name, expires, allowedIps, scopes: undefined };
      const refused = await refusedFields(() =>
        createKey.run(desk.operating, actor, createKey.read(input as never, desk.deps.now())),
      );
      seen[refused === null ? 'made' : 'refused'] += 1;
      const more = excess({ ...own, role: 'owner' }, { ...given, projects: [index] });
      if (more.length > 0) expect(refused).not.toBeNull();
      for (const field of refused ?? []) if (field !== 'allowedIps') expect(more).toContain(field);
    }),
    RUNS,
  );
  // The frequencies are random, but both outcomes must occur.
  expect(Math.min(seen.made, seen.refused)).toBeGreaterThan(0);
});

const UNBOUND: Wanted = { role: 'owner', projects: null, hours: null, cidrs: null };
const BOUND: readonly [name: string, Wanted][] = [
  ['has a lower role', { ...UNBOUND, role: 'operator' }],
  ['has some projects', { ...UNBOUND, projects: [0] }],
  ['ends', { ...UNBOUND, hours: 1 }],
  ['is used from some addresses', { ...UNBOUND, cidrs: ['192.0.2.0/24'] }],
];

/** The ways to give someone access that neither expires nor has a list of addresses. */
const WAYS: readonly [name: string, (desk: Awaited<ReturnType<typeof open>>, actor: Actor) => Promise<unknown>][] = [
  ['an admin key', (desk, actor) => desk.createAdminKey(actor, UNBOUND)],
  [
    'an invitation',
    ({ deps }, actor) => invitePerson.run(deps, actor, { login: 'eve', name: 'eve', role: 'owner', projects: null }),
  ],
  ['another role', ({ deps }, actor) => changeRole.run(deps, actor, { person: 'vera', role: 'owner' as Role })],
  ['a reset', ({ deps }, actor) => resetPerson.run(deps, actor, { person: 'olga' })],
];

test.each(BOUND.flatMap(([bound, own]) => WAYS.map(([way, give]) => [bound, way, own, give] as const)))(
  'a key that %s gives no owner’s access by %s',
  async (_bound, _way, own, give) => {
    const desk = await open();
    for (const login of ['vera', 'olga']) {
      const role = login === 'vera' ? 'viewer' : 'owner';
      await invitePerson.run(desk.deps, ANN, { login, name: login, role, projects: null });
    }
    const actor = await desk.holderOf(own);
    const before = await desk.sql('select id, role, mac from people order by id');
    const keys = await desk.count();
    await expect(give(desk, actor)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect([await desk.sql('select id, role, mac from people order by id'), await desk.count()]).toEqual([
      before,
      keys,
    ]);
    // Without limits, the key may.
    await give(desk, await desk.holderOf(UNBOUND));
  },
);

test('a key that ends or has a list of addresses enables no adapter, whose key has neither', async () => {
  const desk = await open();
  const [project] = desk.projects;
  const input = { projectId: project?.projectId, kind: 'epusdt', currency: 'CNY', rate: '7.1' };
  const enable = (actor: Actor) =>
    enableAdapter.run(desk.operating, actor, enableAdapter.read(input as never, desk.deps.now()));
  for (const own of [
    { ...UNBOUND, hours: 1 },
    { ...UNBOUND, cidrs: ['192.0.2.0/24'] },
  ]) {
    await expect(enable(await desk.holderOf(own))).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  }
  expect(await desk.sql('select id from webhook_endpoints')).toEqual([]);
  await enable(await desk.holderOf(UNBOUND));
});

test('a refusal says what the key has and what to give', async () => {
  const desk = await open();
  const own: Wanted = { role: 'owner', projects: null, hours: 2, cidrs: ['192.0.2.0/24'] };
  const actor = await desk.holderOf(own);
  const end = toIso(unixMs(desk.deps.now() + 2 * HOUR_MS));
  const refused = await desk.createAdminKey(actor, UNBOUND).catch((error: AppError) => error);
  expect((refused as AppError).message).toBe('nothing was created, because key cannot grant more access than it has');
  expect((refused as AppError).problems.map(({ message }) => String(message))).toEqual([
    `expires is missing, but key expires at ${end}: use this time or an earlier time`,
    'allowedIps is missing, but key can be used only from 192.0.2.0/24: choose from these addresses',
  ]);
});
