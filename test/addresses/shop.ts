import { randomBytes } from 'node:crypto';
import { type AccountHex, accountToAddress } from '@quittance/tron/address';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { findOpenAlarms } from '../../src/core/store/chain/alarms.ts';
import { insertAddress, listAddresses } from '../../src/core/store/ledger/addresses.ts';
import { insertProject } from '../../src/core/store/ledger/projects.ts';
import type { Actor } from '../../src/faces/operator/actor.ts';
import { NO_MANIFEST } from '../../src/faces/operator/operation.ts';
import { type Added, addAddresses } from '../../src/faces/operator/subjects/addresses.ts';
import { insertAdminKey } from '../../src/faces/operator/subjects/admin-keys.ts';
import { listAudit, readAuditFilter } from '../../src/faces/operator/subjects/audit.ts';
import { findPerson } from '../../src/faces/operator/subjects/people.ts';
import { personActor } from '../../src/faces/operator/subjects/sessions.ts';
import { ANN, type Desk, openDesk } from '../people/desk.ts';

/** Returns an address to which no one has the key. */
export function newAddress(): { account: AccountHex; address: string } {
  const account = randomBytes(20).toString('hex') as AccountHex;
  return { account, address: accountToAddress(account) };
}

/** Creates a project with an address, a database with a movable clock, and people who may act on the project. */
export async function openShop({ addressCount = 1, ...options }: { addressCount?: number; rowMacs?: 'require' } = {}) {
  const desk = await openDesk(options);
  const { db, deps } = desk;
  const { now, random } = deps;
  const config = { sandbox: false, networks: {} };
  const addProject = async (count: number) => {
    const id = uuidV7(now(), randomBytes(10));
    await insertProject(db, {
      ...{ id, name: 'Shop', network: 'nile', maxSurchargeMicro: 10_000n, invoiceLifetimeMs: 1_800_000 },
    });
    for (let i = 0; i < count; i++) {
      const one = newAddress();
      await insertAddress(db, {
        ...{ id: uuidV7(now(), randomBytes(10)), projectId: id, account: one.account, address: one.address as never },
      });
    }
    return { id, projectId: encodeId('prj', id) };
  };
  const project = await addProject(addressCount);
  const operating = { db, now, random, config };
  return {
    ...{ desk, db, now, operating, project, addProject },
    owner: (login: string) => joined(desk, login, 'owner'),
    operator: (login: string) => joined(desk, login, 'operator'),
    /** Creates an admin key, by default with a command. */
    key: async (maker: Actor = ANN): Promise<Actor> => {
      const id = uuidV7(now(), randomBytes(10));
      await insertAdminKey(db, {
        ...{ id, name: 'cron', role: 'owner', projects: null, allowedCidrs: null, expiresAt: null },
        secretSha256: randomBytes(32),
      });
      await desk.sql(
        `insert into operator_actions (action, subject, detail, acted_by, acted_at, actor_kind, actor_id)
         values ('admin-key.created', $1, '{}', $2, $3, $4, $5)`,
        [encodeId('adm', id), maker.name, new Date(now()), maker.kind, maker.id],
      );
      return { ...ANN, kind: 'admin', name: 'cron', id, origin: '198.51.100.4' };
    },
    add: (actor: Actor, addresses: readonly string[], more: Partial<typeof operating> = {}, projectId?: string) =>
      addAddresses.run({ ...operating, addressGuard: NO_MANIFEST, ...more }, actor, {
        ...{ projectId: projectId ?? project.projectId, policy: undefined, isFresh: false, isChecked: false },
        entries: addresses.map((text, index) => ({ text, place: `line ${index + 1}` })),
      }),
    addresses: async (id = project.id) => (await listAddresses(db, id)).map(({ address }) => address as string),
    alarms: async () =>
      (await findOpenAlarms(db, 'nile')).map(({ kind, subject, detail }) => ({ kind, subject, detail })),
    /** Returns the recorded actions on an address, oldest first. */
    record: async (subject: string) => {
      const { data } = await listAudit.run({ db }, ANN, readAuditFilter({ subject }));
      return data.toReversed().map(({ action, actor }) => `${action} by ${actor.name} (${actor.kind})`);
    },
  };
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

/** Invites a person with a command. */
async function joined(desk: Desk, login: string, role: 'owner' | 'operator'): Promise<Actor> {
  await desk.invite(login, role);
  const person = await findPerson(desk.db, { id: null, login });
  if (person === null) throw new Error(`${login} is not there`);
  return personActor(person, { origin: '203.0.113.7', requestId: null });
}

/** Returns the id of a pending change. */
export function changeOf(added: Added): string {
  if (added.kind !== 'proposed') throw new Error('it was added at once');
  return added.view.proposed.changeId;
}
