import { expect, test } from 'vitest';
import { pickUser, sharedUserProblem } from './user.ts';

const ROOT = 'root:x:0:0:root:/root:/bin/bash\n';
const NOBODY = 'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n';
const POSTGRES = 'postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash\n';
const OWN = 'quittance:x:995:994::/nonexistent:/usr/sbin/nologin\n';
/** As on macOS. */
const MINUS_TWO = 'nobody:*:-2:-2:Unprivileged User:/var/empty:/usr/bin/false\n';

test('root gives PostgreSQL to its own user, else to postgres, and to nobody only where there is neither', () => {
  expect(pickUser(ROOT + NOBODY + POSTGRES + OWN, undefined)).toEqual({ name: 'quittance', uid: 995, gid: 994 });
  expect(pickUser(ROOT + NOBODY + POSTGRES, undefined).name).toBe('postgres');
  expect(pickUser(ROOT + NOBODY, undefined).name).toBe('nobody');
  expect(() => pickUser(ROOT, undefined)).toThrow('no user to run it as (quittance, postgres, nobody)');
});

test('an existing database stays with its owner, though another user would be taken for a new one', () => {
  expect(pickUser(NOBODY + OWN, { uid: 65_534, gid: 65_534 }).name).toBe('nobody');
  expect(pickUser(NOBODY + OWN, { uid: 4242, gid: 7 })).toEqual({ name: 'uid 4242', uid: 4242, gid: 7 });
});

test('a database of nobody is a problem, and the way out is named; that of another user is none', () => {
  const home = '/srv/quittance/postgres';
  expect(sharedUserProblem(pickUser(NOBODY, undefined), undefined)).toMatch(
    /nobody.*useradd --system [^,]*quittance"$/,
  );
  expect(sharedUserProblem(pickUser('', { uid: 65_534, gid: 1 }), home)).toContain(`"chown -R quittance: ${home}"`);
  expect(sharedUserProblem(pickUser(MINUS_TWO, undefined), undefined)).toContain('nobody');
  expect(sharedUserProblem(pickUser(NOBODY + POSTGRES, undefined), undefined)).toBeUndefined();
  expect(sharedUserProblem(undefined, home)).toBeUndefined();
});
