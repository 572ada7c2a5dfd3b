import { randomBytes } from 'node:crypto';
import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import { expect, onTestFinished, test } from 'vitest';
import { decodeId, encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { applyAddressChange } from '../../src/core/payments/apply-address-change.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { insertAddress } from '../../src/core/store/ledger/addresses.ts';
import {
  confirmAddressChange,
  listAddressChanges,
  showAddressChange,
  withdrawAddressChange,
} from '../../src/faces/operator/subjects/address-changes.ts';
import { revokeAdminKey } from '../../src/faces/operator/subjects/admin-keys.ts';
import { acknowledgeAlarms, readAlarmKind } from '../../src/faces/operator/subjects/chain.ts';
import {
  changeRole,
  findPerson,
  invitePerson,
  readNewPerson,
  removePerson,
  resetPerson,
} from '../../src/faces/operator/subjects/people.ts';
import { personActor } from '../../src/faces/operator/subjects/sessions.ts';
import { ANN, HOUR_MS } from '../people/desk.ts';
import { changeOf, newAddress, openShop, type Shop } from './shop.ts';

const DAY_MS = 24 * HOUR_MS;

const due = (shop: Shop, changeId: string, contracts = [] as never[]) =>
  applyAddressChange({ ...shop.operating, contracts }, decodeId('chg', changeId) ?? '', { kind: 'due' });
const confirm = (shop: Shop, actor: Parameters<typeof confirmAddressChange.run>[1], changeId: string) =>
  confirmAddressChange.run(shop.operating, actor, { changeId });

test('an address that an owner adds waits for a day, then it is added once, and the record tells both', async () => {
  const shop = await openShop();
  const [own] = await shop.addresses();
  const [ana, { address }] = [await shop.owner('ana'), newAddress()];
  const change = changeOf(await shop.add(ana, [address]));
  expect(await shop.alarms()).toEqual([
    {
      ...{ kind: 'address-change-pending', subject: shop.project.projectId },
      detail: expect.stringMatching(new RegExp(`${change}: 1 address \\(${address}\\), proposed by ana \\(console\\)`)),
    },
  ]);
  shop.desk.pass(DAY_MS - 1);
  expect(await due(shop, change)).toEqual({ kind: 'none' });
  expect(await shop.addresses()).toEqual([own]);
  shop.desk.pass(1);
  expect(await due(shop, change)).toMatchObject({ kind: 'applied', added: [address], passedOver: [] });
  expect(await due(shop, change)).toEqual({ kind: 'none' });
  expect(await shop.addresses()).toEqual([own, address]);
  expect(await shop.record(address)).toEqual([
    'address.proposed by ana (console)',
    'address.added by quittance (service)',
  ]);
  expect(await shop.alarms()).toEqual([]);
});

test('a change with an address that is not signed in time fails, and the alarm says so', async () => {
  const shop = await openShop();
  const [ana, signed, unsigned] = [await shop.owner('ana'), newAddress().address, newAddress().address];
  const change = changeOf(await shop.add(ana, [signed, unsigned]));
  shop.desk.pass(DAY_MS);
  const lack = 'the manifest in force (serial 1) does not list it';
  const refuseNew: Shop['db']['refuseNew'] = ({ address }) => (address === unsigned ? lack : null);
  const guarded = { ...shop, operating: { ...shop.operating, db: { ...shop.db, refuseNew } } };
  expect(await due(guarded, change)).toMatchObject({ kind: 'failed' });
  expect(await shop.addresses()).not.toContain(signed);
  expect(await shop.alarms()).toEqual([
    {
      ...{ kind: 'address-change-failed', subject: shop.project.projectId },
      detail: expect.stringContaining(`${unsigned} has to be signed first: ${lack}. If they are yours, propose them`),
    },
  ]);
  expect(await due(guarded, change)).toEqual({ kind: 'none' });
});

test('a clock that is put back makes nothing sooner', async () => {
  const shop = await openShop();
  const change = changeOf(await shop.add(await shop.owner('ana'), [newAddress().address]));
  shop.desk.pass(-3 * DAY_MS);
  expect(await due(shop, change)).toEqual({ kind: 'none' });
  shop.desk.pass(3 * DAY_MS);
  expect(await due(shop, change)).toEqual({ kind: 'none' });
  shop.desk.pass(DAY_MS);
  expect(await due(shop, change)).toMatchObject({ kind: 'applied' });
});

test('another owner confirms it at once; the same person in another session, a key, an operator and nobody’s session do not', async () => {
  const shop = await openShop();
  const [ana, bob, { address }] = [await shop.owner('ana'), await shop.owner('bob'), newAddress()];
  const change = changeOf(await shop.add(ana, [address]));
  const refused = [
    [{ ...ana, name: 'Ana', origin: '198.51.100.9', requestId: 'req_2' }, 'you proposed this change'],
    [await shop.key(), 'with a second factor'],
    [await shop.operator('otto'), 'only an owner can confirm this change'],
    [{ ...bob, id: null }, 'with a second factor'],
  ] as const;
  for (const [actor, why] of refused) {
    await expect(confirm(shop, actor, change)).rejects.toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(why),
    });
    expect((await showAddressChange.run(shop.operating, actor, { changeId: change })).refusal).toContain(why);
  }
  expect(await shop.addresses()).not.toContain(address);
  expect((await showAddressChange.run(shop.operating, bob, { changeId: change })).refusal).toBeNull();
  expect(await confirm(shop, bob, change)).toMatchObject({
    added: [address],
    change: { state: 'applied', endedBy: 'bob' },
  });
  expect(await shop.record(address)).toEqual([
    'address.proposed by ana (console)',
    'address.confirmed by bob (console)',
    'address.added by bob (console)',
  ]);
  await expect(confirm(shop, bob, change)).rejects.toThrow('was applied by bob');
});

test('whoever runs a command on the machine confirms at once, and adds without waiting', async () => {
  const shop = await openShop();
  const [ana, one, two] = [await shop.owner('ana'), newAddress().address, newAddress().address];
  expect(await confirm(shop, ANN, changeOf(await shop.add(ana, [one])))).toMatchObject({ added: [one] });
  expect(await shop.add(ANN, [two])).toMatchObject({ kind: 'added', view: { added: [two] } });
});

test('the first addresses of a project, and those of a sandbox, do not wait; a project whose addresses are retired is no new one', async () => {
  const shop = await openShop({ addressCount: 0 });
  const ana = await shop.owner('ana');
  const sandboxOwner = { ...ana, name: 'sandbox', id: null };
  expect(await shop.add(ana, [newAddress().address])).toMatchObject({ kind: 'added' });
  expect(await shop.add(await shop.key(), [newAddress().address])).toMatchObject({ kind: 'proposed' });
  const sandbox = { ...shop.operating.config, sandbox: true };
  expect(await shop.add(sandboxOwner, [newAddress().address], { config: sandbox })).toMatchObject({ kind: 'added' });
  await shop.desk.sql('update addresses set retired_at = now()');
  expect(await shop.add(ana, [newAddress().address])).toMatchObject({ kind: 'proposed' });
});

test('an owner whom somebody invited, reset or promoted in the console cannot confirm for a week: who stole a session could be both', async () => {
  const shop = await openShop();
  const [ana, cy] = [await shop.owner('ana'), await shop.owner('cy')];
  await invitePerson.run(shop.desk.deps, ana, readNewPerson({ login: 'mallory', role: 'owner' }));
  const mallory = await findPerson(shop.db, { id: null, login: 'mallory' });
  if (mallory === null) throw new Error('nobody was invited');
  const actor = personActor(mallory, { origin: '198.51.100.9', requestId: null });
  await resetPerson.run(shop.desk.deps, ana, { person: 'cy' });
  const propose = async () => changeOf(await shop.add(ana, [newAddress().address]));
  for (const each of [actor, cy]) {
    await expect(confirm(shop, each, await propose())).rejects.toThrow('less than seven days old');
  }
  shop.desk.pass(7 * DAY_MS);
  await expect(confirm(shop, actor, await propose())).resolves.toMatchObject({ added: [expect.any(String)] });
});

test.each([
  ['makes the entry older', `update operator_actions set acted_at = acted_at - interval '30 days'`],
  ['says that a command did it', `update operator_actions set actor_kind = 'cli', actor_id = null`],
  ['gives the entry to somebody else', `update operator_actions set subject = 'usr_x'`],
])('whoever %s by which it became an owner yesterday cannot confirm by that', async (_, text) => {
  const shop = await openShop({ rowMacs: 'require' });
  const [ana, bob, cy] = [await shop.owner('ana'), await shop.owner('bob'), await shop.operator('cy')];
  shop.desk.pass(30 * DAY_MS);
  await changeRole.run(shop.desk.deps, ana, { person: 'cy', role: 'owner', projects: null });
  const change = changeOf(await shop.add(ana, [newAddress().address]));
  const owner = { ...cy, role: 'owner' as const };
  await expect(confirm(shop, owner, change)).rejects.toThrow('less than seven days old');
  await shop.desk.sql('alter table operator_actions disable trigger all');
  await shop.desk.sql(`${text} where action = 'user.changed'`);
  await shop.desk.sql('alter table operator_actions enable trigger all');
  await expect(confirm(shop, owner, change)).rejects.toThrow('the audit log does not record');
  await expect(confirm(shop, bob, change)).resolves.toMatchObject({ added: [expect.any(String)] });
});

test('what a key proposed is not confirmed by the person who made the key, nor where a key made it', async () => {
  const shop = await openShop();
  const [ana, bob] = [await shop.owner('ana'), await shop.owner('bob')];
  const ofAna = await shop.key(ana);
  const change = changeOf(await shop.add(ofAna, [newAddress().address]));
  await expect(confirm(shop, ana, change)).rejects.toThrow('you created the key');
  await expect(confirm(shop, bob, change)).resolves.toMatchObject({ added: [expect.any(String)] });
  const ofKey = changeOf(await shop.add(await shop.key(ofAna), [newAddress().address]));
  await expect(confirm(shop, bob, ofKey)).rejects.toThrow('no one can confirm it');
  shop.desk.pass(DAY_MS);
  expect(await due(shop, ofKey)).toMatchObject({ kind: 'applied' });
});

const DISTRUST: [name: string, act: (shop: Shop, login: string) => Promise<unknown>][] = [
  [
    'given a different role',
    (shop, person) => changeRole.run(shop.desk.deps, ANN, { person, role: 'viewer', projects: null }),
  ],
  [
    'demoted and made an owner again',
    async (shop, person) => {
      await changeRole.run(shop.desk.deps, ANN, { person, role: 'viewer', projects: null });
      await changeRole.run(shop.desk.deps, ANN, { person, role: 'owner', projects: null });
    },
  ],
  ['reset', (shop, person) => resetPerson.run(shop.desk.deps, ANN, { person })],
  ['removed', (shop, person) => removePerson.run(shop.desk.deps, ANN, { person })],
];

test.each(DISTRUST)(
  'a change whose proposer was %s since is not made: neither by time nor by another owner',
  async (_name, act) => {
    const shop = await openShop();
    const [ana, bob, kept, lost, late] = [
      ...[await shop.owner('ana'), await shop.owner('bob')],
      ...[newAddress().address, newAddress().address, newAddress().address],
    ] as const;
    for (const login of ['ana', 'bob']) {
      await shop.desk.sql(
        `update people set password_hash = 'x', master_key_id = 'x', totp_sealed = 'x' where login = $1`,
        [login],
      );
    }
    const [byTime, byBob] = [changeOf(await shop.add(ana, [lost])), changeOf(await shop.add(ana, [late]))];
    const ofBob = changeOf(await shop.add(bob, [kept]));
    await act(shop, 'ana');
    await expect(confirm(shop, bob, byBob)).rejects.toThrow(
      'was later removed, reset, revoked or given a different role',
    );
    shop.desk.pass(DAY_MS);
    expect(await due(shop, byTime)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('the person or key that proposed the addresses'),
    });
    expect(await due(shop, ofBob)).toMatchObject({ kind: 'applied' });
    const addresses = await shop.addresses();
    expect([kept, lost, late].map((address) => addresses.includes(address))).toEqual([true, false, false]);
    expect(await shop.record(lost)).toEqual([
      'address.proposed by ana (console)',
      'address.failed by quittance (service)',
    ]);
    expect(await shop.record(late)).toEqual(['address.proposed by ana (console)', 'address.failed by bob (console)']);
  },
);

test('what a key proposed that was revoked since is not added', async () => {
  const shop = await openShop();
  const key = await shop.key();
  const change = changeOf(await shop.add(key, [newAddress().address]));
  await revokeAdminKey(shop.db, key.id ?? '', shop.now());
  shop.desk.pass(DAY_MS);
  expect(await due(shop, change)).toMatchObject({ kind: 'failed' });
  expect(await shop.alarms()).toMatchObject([{ kind: 'address-change-failed', subject: shop.project.projectId }]);
});

test('what was withdrawn is never added, by whatever comes later; an operator withdraws', async () => {
  const shop = await openShop();
  const [ana, otto, { address }] = [await shop.owner('ana'), await shop.operator('otto'), newAddress()];
  const change = changeOf(await shop.add(ana, [address]));
  expect(await withdrawAddressChange.run(shop.operating, otto, { changeId: change })).toMatchObject({
    state: 'withdrawn',
    endedBy: 'otto',
  });
  expect(await shop.alarms()).toEqual([]);
  shop.desk.pass(2 * DAY_MS);
  expect(await due(shop, change)).toEqual({ kind: 'none' });
  for (const actor of [await shop.owner('bob'), ANN]) {
    await expect(confirm(shop, actor, change)).rejects.toThrow('was withdrawn by otto');
  }
  await expect(withdrawAddressChange.run(shop.operating, ana, { changeId: change })).rejects.toThrow(
    'was withdrawn by otto',
  );
  expect(await shop.addresses()).not.toContain(address);
  expect(await shop.record(address)).toEqual([
    'address.proposed by ana (console)',
    'address.withdrawn by otto (console)',
  ]);
  const { data } = await listAddressChanges.run(shop.operating, ana, { projectId: undefined });
  expect(data).toMatchObject([{ changeId: change, state: 'withdrawn', addresses: [address] }]);
});

test('of all who end a change at once one does, and the record has it once', async () => {
  const shop = await openShop();
  const others = [0, 1].map(() =>
    openDatabase({
      connection: shop.desk.database.connection,
      poolSize: 2,
      applicationName: 'other',
      onError: () => undefined,
    }),
  );
  onTestFinished(async () => void (await Promise.all(others.map((db) => db.close()))));
  const [ana, bob, otto] = [await shop.owner('ana'), await shop.owner('bob'), await shop.operator('otto')];
  for (let round = 0; round < 5; round += 1) {
    const { address } = newAddress();
    const change = changeOf(await shop.add(ana, [address]));
    shop.desk.pass(DAY_MS);
    const ways = [...others, shop.db].flatMap((db) => {
      const one = { ...shop, operating: { ...shop.operating, db } };
      return [
        due(one, change).then(({ kind }) => kind === 'applied'),
        confirm(one, bob, change).then(
          () => true,
          () => false,
        ),
        withdrawAddressChange.run(one.operating, otto, { changeId: change }).then(
          () => true,
          () => false,
        ),
      ];
    });
    expect((await Promise.all(ways)).filter((isDone) => isDone)).toHaveLength(1);
    const record = (await shop.record(address)).filter((each) => !/proposed|confirmed/.test(each));
    expect(record).toEqual([expect.stringMatching(/^address\.(added|withdrawn) by/)]);
    expect((await shop.addresses()).includes(address)).toBe(record[0]?.startsWith('address.added'));
  }
});

test('an address of another project, of the contract, or that waits already is refused at once', async () => {
  const shop = await openShop();
  const [ana, { address }] = [await shop.owner('ana'), newAddress()];
  const other = await shop.addProject(1);
  const [foreign = ''] = await shop.addresses(other.id);
  const [own = ''] = await shop.addresses();
  const refused: [string, string][] = [
    [foreign, 'belongs to another project'],
    [own, 'is already in this project'],
    [USDT_CONTRACTS.nile.address, 'the USDT contract itself'],
    ['T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb', 'the burn address'],
  ];
  for (const [text, why] of refused) {
    await expect(shop.add(ana, [address, text])).rejects.toMatchObject({
      problems: [expect.objectContaining({ message: expect.stringContaining(why) })],
    });
  }
  const change = changeOf(await shop.add(ana, [address]));
  await expect(shop.add(ana, [newAddress().address, address])).rejects.toThrow(
    `${address} is already pending in ${change}`,
  );
  expect(await shop.add(ana, [address], {}, other.projectId)).toMatchObject({ kind: 'proposed' });
});

test('what was checked is checked again when a change is made, and all of it fails or none', async () => {
  const shop = await openShop();
  const ana = await shop.owner('ana');
  const other = await shop.addProject(1);
  const [one, two] = [newAddress(), newAddress()];
  const change = changeOf(await shop.add(ana, [one.address, two.address]));
  const id = uuidV7(shop.now(), randomBytes(10));
  await insertAddress(shop.db, { id, projectId: other.id, account: two.account, address: two.address as never });
  shop.desk.pass(DAY_MS);
  expect(await due(shop, change)).toMatchObject({
    kind: 'failed',
    reason: `${two.address} now belongs to another project`,
  });
  expect(await shop.addresses()).not.toContain(one.address);
  const subject = shop.project.projectId;
  expect(await shop.alarms()).toEqual([
    {
      kind: 'address-change-failed',
      subject,
      detail: expect.stringContaining(`${change} were not added to ${subject}`),
    },
  ]);
  const contract = newAddress();
  const ofContract = changeOf(await shop.add(ana, [contract.address]));
  shop.desk.pass(DAY_MS);
  expect(await due(shop, ofContract, [contract.account as never])).toMatchObject({ kind: 'failed' });
  expect(() => readAlarmKind('address-change-pending')).toThrow('closes automatically');
  const kind = readAlarmKind('address-change-failed');
  await acknowledgeAlarms.run({ ...shop.operating, networks: ['nile'] }, ana, { network: 'nile', kind, subject });
  expect(await shop.alarms()).toEqual([]);
});

test('an address that a command added meanwhile is passed over, and the rest is added', async () => {
  const shop = await openShop();
  const [ana, one, two] = [await shop.owner('ana'), newAddress().address, newAddress().address];
  const change = changeOf(await shop.add(ana, [one, two]));
  await shop.add(ANN, [one]);
  shop.desk.pass(DAY_MS);
  expect(await due(shop, change)).toMatchObject({ kind: 'applied', added: [two], passedOver: [one] });
});

test('a change that was proposed before a restore of the ledger is not made', async () => {
  const shop = await openShop();
  await shop.desk.sql(`insert into ledger_identity (id, database_oid) values ('${uuidV7(1, randomBytes(10))}', 1)`);
  const change = changeOf(await shop.add(await shop.owner('ana'), [newAddress().address]));
  await shop.desk.sql('update ledger_identity set first_index = 5');
  shop.desk.pass(DAY_MS);
  expect(await due(shop, change)).toMatchObject({ kind: 'failed', reason: expect.stringContaining('restored') });
});

test('a change has 500 addresses at most, and a project 20 that wait', async () => {
  const shop = await openShop();
  const ana = await shop.owner('ana');
  const many = Array.from({ length: 501 }, () => newAddress().address);
  await expect(shop.add(ana, many)).rejects.toThrow('501 addresses were given, but at most 500 can wait');
  for (const address of many.slice(0, 19)) await shop.add(ana, [address]);
  const last = changeOf(await shop.add(ana, many.slice(1).reverse().slice(0, 480)));
  await expect(shop.add(ana, [newAddress().address])).rejects.toThrow('20 changes to this project are already pending');
  const [alarm] = await shop.alarms();
  expect(alarm?.detail).toContain('and 17 more');
  await withdrawAddressChange.run(shop.operating, ana, { changeId: last });
  await expect(shop.add(ana, [newAddress().address])).resolves.toMatchObject({ kind: 'proposed' });
});

test('a change of a project that one may not see is as one that does not exist', async () => {
  const shop = await openShop();
  const ana = await shop.owner('ana');
  const other = await shop.addProject(1);
  const change = changeOf(await shop.add(ana, [newAddress().address]));
  const scoped = { ...ana, role: 'operator', projects: [other.id] } as const;
  const unknown = encodeId('chg', uuidV7(1, randomBytes(10)));
  for (const use of [showAddressChange, withdrawAddressChange]) {
    const [foreign, none] = await Promise.all(
      [change, unknown].map((changeId) =>
        use.run(shop.operating, scoped, { changeId }).catch((error: Error) => error.message),
      ),
    );
    expect(foreign).toBe(String(none).replace(unknown, change));
    expect(foreign).toContain('there is no change');
  }
});

test('who may not be told sees no network address of who proposed', async () => {
  const shop = await openShop();
  const [ana, otto] = [await shop.owner('ana'), await shop.operator('otto')];
  const changeId = changeOf(await shop.add(ana, [newAddress().address]));
  expect((await showAddressChange.run(shop.operating, ana, { changeId })).view.origin).toBe('203.0.113.7');
  expect((await showAddressChange.run(shop.operating, otto, { changeId })).view.origin).toBeNull();
  expect(JSON.stringify(await shop.alarms())).not.toContain('203.0.113.7');
});

/** A due row of the table of changes, forged by an attacker who knows everything about the table. */
const MADE_UP = `insert into address_changes (id, project_id, network, kind, policy, addresses, first_index, actor_kind, actor_id, acted_by,
    proposed_at, due_at)
  select $1, project_id, network, kind, policy, array[$2], first_index, actor_kind, actor_id, acted_by,
    proposed_at - interval '2 days', proposed_at - interval '1 day'
  from address_changes where id = $3`;

test('a change that nobody proposed, that somebody changed, or that has ended, adds nothing, whatever the table says', async () => {
  const shop = await openShop();
  const [own] = await shop.addresses();
  const [ana, thief] = [await shop.owner('ana'), newAddress()];
  const genuine = changeOf(await shop.add(ana, [newAddress().address]));
  const id = uuidV7(shop.now(), randomBytes(10));
  await shop.desk.sql(MADE_UP, [id, thief.address, decodeId('chg', genuine)]);
  const unproposed = {
    kind: 'failed',
    reason: expect.stringContaining('the audit log has no matching proposal'),
  };
  const madeUp = encodeId('chg', id);
  expect(await due(shop, madeUp)).toMatchObject(unproposed);
  expect((await shop.alarms()).filter(({ kind }) => kind === 'address-change-failed')).toEqual([
    expect.objectContaining({ detail: expect.stringContaining(madeUp) }),
  ]);
  const past = (text: string) =>
    shop.desk.sql(`do $$ begin set local session_replication_role = replica; ${text}; end $$`);
  await past(
    `update address_changes set addresses = array_append(addresses, '${thief.address}') where state = 'waiting'`,
  );
  shop.desk.pass(DAY_MS);
  expect(await due(shop, genuine)).toMatchObject(unproposed);
  const withdrawn = changeOf(await shop.add(ana, [newAddress().address]));
  await withdrawAddressChange.run(shop.operating, ana, { changeId: withdrawn });
  await past(
    `update address_changes set state = 'waiting', ended_at = null, ended_by = null where id = '${decodeId('chg', withdrawn)}'`,
  );
  shop.desk.pass(DAY_MS);
  expect(await due(shop, withdrawn)).toMatchObject({
    kind: 'failed',
    reason: 'according to the audit log, the change has already ended',
  });
  expect(await shop.addresses()).toEqual([own]);
});
