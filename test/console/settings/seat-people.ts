import { commandActor, type Role } from '../../../src/faces/operator/actor.ts';
import { invitePerson, readNewPerson } from '../../../src/faces/operator/subjects/people.ts';
import { findSession, personActor } from '../../../src/faces/operator/subjects/sessions.ts';
import { openInvitation, redeemInvitation } from '../../../src/faces/operator/subjects/sign-in.ts';
import { codeOf } from '../../people/desk.ts';
import type { TestConsole } from '../console.ts';

const NAMES: readonly [login: string, name: string, role: Role][] = [
  ['ana', 'Ana', 'owner'],
  ['otto@example.com', 'و'.repeat(100), 'operator'],
  ['vera', 'W'.repeat(100), 'viewer'],
];
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

/**
 * Adds Ana as a person who has signed in twice, and others with names of the greatest allowed length, one of whom hasn't redeemed their
 * link.
 */
export async function seatPeople({ people, actors, sessions }: TestConsole): Promise<void> {
  const deps = people();
  const ann = commandActor('ann');
  const invite = async (login: string, name: string, role: Role) => {
    const { link } = await invitePerson.run(deps, ann, readNewPerson({ login, name, role }));
    return link.slice(link.lastIndexOf('/') + 1);
  };
  for (const [login, name, role] of NAMES) {
    const token = await invite(login, name, role);
    const at = {
      origin: '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
      network: login,
      userAgent: BROWSER,
      requestId: null,
    };
    const secret = (await openInvitation(deps, token))?.totp.secret ?? '';
    const joined = await redeemInvitation(deps, at, token, {
      password: 'a heron in the reeds',
      code: codeOf(secret, deps.now()),
    });
    const session = await findSession(deps, joined.token);
    if (session === null) throw new Error('the session has ended');
    if (login === 'ana') {
      sessions['ana'] = session;
      actors['ana'] = personActor(session.person, at);
    }
  }
  await invite('zoe', 'Zoe', 'viewer');
}
