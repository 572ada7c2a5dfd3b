import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { uuidV7 } from '../../src/core/domain/ids.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { findNewestBackup } from '../../src/faces/operator/backup/backup-directory.ts';
import { recordActions } from '../../src/faces/operator/record-actions.ts';
import { runCli } from '../cli/run-cli.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import { call, inboxOf } from '../support/service.ts';
import { type Attempt, type Order, tryGroup, World } from './world.ts';

const world = new World();
let paid: Order;

const feedOf = (apiKey: string) => call(`${world.service.url}/v1/events`, { headers: { 'x-api-key': apiKey } });

/** Returns what `chain status` shows an operator. */
async function chainStatus(): Promise<string> {
  const QUITTANCE_MASTER_KEY = TEST_KEY_RING.current().bytes.toString('base64');
  const env = { DATABASE_URL: world.service.connectionString, QUITTANCE_ROW_MACS: 'require', QUITTANCE_MASTER_KEY };
  return (await runCli(['chain', 'status', '--json'], { env })).stdout;
}

const eventMadeUp: Attempt = async (as) => {
  const [{ id: projectId, apiKey }, eventId] = [world.shop(), uuidV7(Date.now(), randomBytes(10))];
  const body = JSON.stringify({ type: 'invoice.paid', data: { invoiceId: 'inv_forged' } });
  await as(
    `with s as (insert into event_streams (project_id, last_position) values ($2, 1)
       on conflict (project_id) do update set last_position = event_streams.last_position + 1 returning last_position)
     insert into events (id, project_id, network, type, sequence, body, created_at, position)
     select $1, $2, 'devnet', 'invoice.paid', 1, $3, now(), last_position from s`,
    [eventId, projectId, body],
  );
  await as(
    `insert into deliveries (event_id, endpoint_id, project_id, sequence, next_attempt_at, created_at)
     select $1, id, project_id, 1, now() - interval '1 second', now() - interval '1 second' from webhook_endpoints where project_id = $2`,
    [eventId, projectId],
  );
  return {
    named: eventId,
    holds: async () => {
      await world.untilNamed(eventId);
      expect(JSON.stringify(await inboxOf(world.service))).not.toContain('inv_forged');
      expect(await feedOf(apiKey)).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } });
    },
  };
};

const eventRewritten: Attempt = async (as) => {
  const { id: projectId, apiKey } = paid.shop;
  const [row] = await runSql(world.service, `select id from events where project_id = $1 and body like '%PAID%'`, [
    projectId,
  ]);
  await as(`update events set body = replace(body, 'PAID', 'EXPIRED') where project_id = $1`, [projectId]);
  return {
    named: `events ${row?.['id']}`,
    holds: async () => expect(await feedOf(apiKey)).toMatchObject({ status: 503, body: { code: 'INTEGRITY' } }),
  };
};

const receiptKeyInserted: Attempt = async (as) => {
  const [id, publicKey] = [randomBytes(32).toString('base64url'), randomBytes(32)];
  await as('insert into receipt_keys (id, public_key, created_at, retired_at) values ($1, $2, now(), now())', [
    id,
    publicKey,
  ]);
  const holds = async () => {
    const { status, body } = await call(`${world.service.url}/.well-known/quittance-receipt-keys.json`);
    expect([status, JSON.stringify(body ?? null).includes(publicKey.toString('base64url'))]).toEqual([503, false]);
  };
  return { named: id, holds, undo: `delete from receipt_keys where id = '${id}'` };
};

const logChanged: Attempt = async (as, rights) => {
  const [row] = await runSql(world.service, 'select coalesce(max(seq), 0) + 1 as next from operator_actions');
  await as(
    rights === 'plain'
      ? `insert into operator_actions (action, subject, detail, acted_by, acted_at)
         values ('key.created', 'key_thief', '{}', 'anna', now())`
      : `update operator_actions set acted_by = 'eve' where seq = 2`,
  );
  return { named: `audit-broken entry ${rights === 'plain' ? row?.['next'] : 2} ` };
};

/** An alarm that the watches don't raise again by themselves, because its cause is gone. */
const alarmClosed: Attempt = async (as, rights) => {
  const { endpointId } = world.shop();
  const set = (url: string) => world.asOwner('update webhook_endpoints set url = $1 where id = $2', [url, endpointId]);
  await set('https://thief.example/');
  await world.untilNamed(endpointId);
  await set(world.service.inboxUrl);
  await world.lookAgain();
  const subject = `subject = 'webhook_endpoints ${endpointId}'`;
  await as(
    rights === 'plain'
      ? `update alarms set resolved_at = now() where ${subject}`
      : `delete from alarms where ${subject}`,
  );
  return { named: endpointId };
};

const alarmMadeUp: Attempt = async (as, rights) => {
  const says = `your wallet is in danger (${rights}): send all to TThief`;
  await as(
    `insert into alarms (id, network, kind, subject, detail) values (gen_random_uuid(), 'devnet', 'contract-event', $1, $2)`,
    [rights, says],
  );
  return {
    named: 'row-changed alarms contract-event',
    holds: async () => {
      const shown = await chainStatus();
      expect(shown).not.toContain(says);
      expect(shown).toContain('someone changed them directly in the database');
    },
  };
};

tryGroup(
  world,
  'told',
  {
    shops: 8,
    prepare: async () => {
      await world.service.db.transaction((tx) => {
        const detail = { note: 'x' };
        const done = {
          projectId: world.service.project.id,
          action: 'project.changed',
          subject: 'prj',
          detail,
        } as const;
        return recordActions(tx, commandActor('anna', 'a host'), unixMs(Date.now()), Array(3).fill(done));
      });
      paid = await world.paidOrder();
      // The first receipt creates the signing key.
      expect((await fetch(`${paid.checkoutUrl}/receipt.json`)).status).toBe(200);
    },
  },
  { 15: eventMadeUp, 16: eventRewritten, 25: receiptKeyInserted, 26: logChanged, 27: alarmClosed, 28: alarmMadeUp },
);

test('a backup that nobody made, by a made-up line of the log, is not told as the last one', async () => {
  await world.asService(
    `insert into operator_actions (action, subject, detail, acted_by, acted_at) values ('backup.created', 'backup', '{"file": "/made.up"}', 'anna', now())`,
  );
  expect(await findNewestBackup(world.service.db)).toBeNull();
});
