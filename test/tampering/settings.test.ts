import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { formatApiKey } from '../../src/core/domain/api-key.ts';
import { encodeId, uuidV7 } from '../../src/core/domain/ids.ts';
import { findAccountKey } from '../../src/core/store/ledger/account-keys.ts';
import { revokeApiKey } from '../../src/faces/operator/subjects/keys.ts';
import { runSql } from '../contract/sql.ts';
import { call, createInvoice, inboxOf } from '../support/service.ts';
import { type Attempt, type Shop, tryGroup, World } from './world.ts';

const world = new World();

/** Returns the status for an API key. */
async function answered(apiKey: string): Promise<number> {
  const url = `${world.service.url}/v1/invoices?externalId=none`;
  return (await call(url, { headers: { 'x-api-key': apiKey } })).status;
}

const digestOf = (key: string) => createHash('sha256').update(key).digest();
const newKey = (id: string) => formatApiKey('devnet', id, randomBytes(32));

async function expectNoOrder({ apiKey }: Shop): Promise<void> {
  expect([401, 409, 503]).toContain((await createInvoice(world.service, { apiKey })).status);
}

const addressInserted: Attempt = async (as) => {
  const [{ id: projectId, apiKey }, id, account] = [world.shop(), randomUUID(), randomBytes(20)];
  await as(
    `insert into addresses (id, project_id, network, account, address, policy, position)
     select $1, id, network, $2, tron_address($2), policy, 50 from projects where id = $3`,
    [id, account, projectId],
  );
  return {
    named: id,
    holds: async () => {
      for (let n = 0; n < 5; n += 1) {
        const { status, body } = await createInvoice(world.service, { apiKey });
        expect(status).toBe(201);
        const read = await call(`${world.service.url}/v1/invoices/${body.invoiceId}?expand=payment`, {
          headers: { 'x-api-key': apiKey },
        });
        expect(read).toMatchObject({ status: 200 });
      }
    },
    // Otherwise the watcher would wait before transfers to it.
    undo: `update addresses set retired_at = now() where id = '${id}'`,
  };
};

const addressesRetired: Attempt = async (as) => {
  const shop = world.shop();
  const [row] = await runSql(world.service, 'select id from addresses where project_id = $1', [shop.id]);
  await as('update addresses set retired_at = now() where project_id = $1', [shop.id]);
  return { named: `addresses ${row?.['id']}`, holds: () => expectNoOrder(shop) };
};

const keyInserted: Attempt = async (as) => {
  const id = uuidV7(Date.now(), randomBytes(10));
  const key = newKey(id);
  await as(
    `insert into api_keys (id, project_id, network, name, secret_sha256) values ($1, $2, 'devnet', 'thief', $3)`,
    [id, world.shop().id, digestOf(key)],
  );
  return { named: id, holds: async () => expect(await answered(key)).toBe(401) };
};

const digestReplaced: Attempt = async (as) => {
  const { keyId } = world.shop();
  const key = newKey(keyId);
  await as('update api_keys set secret_sha256 = $2 where id = $1', [keyId, digestOf(key)]);
  return { named: keyId, holds: async () => expect(await answered(key)).toBe(401) };
};

const revocationTakenBack: Attempt = async (as) => {
  const { keyId, apiKey } = world.shop();
  await revokeApiKey(world.service.db, keyId, Date.now() as never);
  await as('update api_keys set revoked_at = null where id = $1', [keyId]);
  return { named: keyId, holds: async () => expect(await answered(apiKey)).toBe(401) };
};

/** Nothing arrives where a webhook then leads. */
const endpointUrl =
  (url: () => string): Attempt =>
  async (as) => {
    const order = await world.order();
    await as('update webhook_endpoints set url = $1 where id = $2', [url(), order.shop.endpointId]);
    return {
      named: `webhook_endpoints ${order.shop.endpointId}`,
      holds: async () => {
        await world.pay(order);
        world.service.devnet.mineUntilSolid();
        await world.untilPaid(order);
        await world.untilNamed(order.shop.endpointId);
        expect(await inboxOf(world.service, order.invoiceId)).toEqual([]);
      },
    };
  };

const secretMoved: Attempt = async (as) => {
  const [one, other] = [world.shop(), world.shop()];
  await as(
    `update webhook_secrets set sealed = (select sealed from webhook_secrets where endpoint_id = $2) where endpoint_id = $1`,
    [one.endpointId, other.endpointId],
  );
  return { named: `secret-damaged ${encodeId('whe', one.endpointId)}` };
};

const secretEnded: Attempt = async (as, rights) => {
  const { endpointId } = world.shop();
  await as(
    rights === 'plain'
      ? `update webhook_secrets set ends_at = created_at where endpoint_id = $1`
      : 'delete from webhook_secrets where endpoint_id = $1',
    [endpointId],
  );
  return { named: `secret-damaged ${encodeId('whe', endpointId)}` };
};

const secretPlanted: Attempt = async (as, rights) => {
  const { endpointId } = world.shop();
  const guard = 'alter table webhook_endpoints drop constraint webhook_endpoints_no_plain_secret;';
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  await as(
    `${rights === 'owner' ? guard : ''} update webhook_endpoints set secret = '${secret}' where id = '${endpointId}'`,
  );
  return { named: 'schema-changed constraint webhook_endpoints.webhook_endpoints_no_plain_secret' };
};

/** Its keys can't create orders any more, and its pages are suspended. */
const project =
  (change: string): Attempt =>
  async (as) => {
    const order = await world.order();
    await as(change.includes('$1') ? change : `update projects set ${change} where id = $1`, [order.shop.id]);
    return {
      named: `projects ${order.shop.id}`,
      holds: async () => {
        expect((await fetch(order.checkoutUrl)).status).toBe(503);
        // A process caches a key with its project for some seconds.
        world.service.clock.advance(30_000);
        await expectNoOrder(order.shop);
      },
    };
  };

const accountKeyInserted: Attempt = async (as, rights) => {
  const xpub = `xpub${(rights === 'plain' ? '6' : '7').repeat(107)}`;
  const id = randomUUID();
  await as(
    `insert into account_keys (id, project_id, network, xpub, first_index, auto_derive_limit) values ($1, $2, 'devnet', $3, 0, 100)`,
    [id, world.shop().id, xpub],
  );
  return {
    named: id,
    holds: () =>
      expect(findAccountKey(world.service.db, 'devnet', xpub as never)).rejects.toMatchObject({ code: 'ROW_CHANGED' }),
  };
};

const LOGO = Buffer.from('<script>alert(1)</script>');
const logoId = createHash('sha256').update(LOGO).digest('hex').slice(0, 32);

tryGroup(
  world,
  'settings',
  { shops: 40, prepare: () => world.expectWell() },
  {
    3: addressInserted,
    4: addressesRetired,
    17: keyInserted,
    18: digestReplaced,
    19: revocationTakenBack,
    20: endpointUrl(() => `${world.service.inboxUrl}/thief`),
    21: endpointUrl(() => 'http://169.254.169.254/latest/meta-data/'),
    22: secretMoved,
    23: secretEnded,
    24: secretPlanted,
    29: project(`return_url = 'https://thief.example'`),
    30: project(`return_url = 'javascript:alert(1)'`),
    31: project(`name = '<script>alert(1)</script>'`),
    32: async (as, rights) => {
      await as(
        `insert into logos (id, type, content, created_at) values ($1, 'image/png', $2, now()) on conflict do nothing`,
        [logoId, LOGO],
      );
      return project(`logo_id = '${logoId}'`)(as, rights);
    },
    33: project('max_surcharge_micro = 1000000'),
    41: accountKeyInserted,
  },
);
