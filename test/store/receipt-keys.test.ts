import { randomBytes, randomUUID } from 'node:crypto';
import type pg from 'pg';
import { beforeEach, expect, test } from 'vitest';
import { unixMs } from '../../src/core/domain/time.ts';
import { createKeyRing, createMasterKey } from '../../src/core/runtime/key-ring.ts';
import { createLogger } from '../../src/core/runtime/log.ts';
import { ensureReceiptKey, readPublicReceiptKeys } from '../../src/core/store/access/receipt-keys.ts';
import type { Database } from '../../src/core/store/db/database.ts';
import { createWebhookSecret } from '../../src/core/webhooks/sign.ts';
import { createReceiptSigner } from '../../src/faces/checkout/receipt/receipt-signer.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { rotateReceiptKey } from '../../src/faces/operator/subjects/receipts.ts';
import { addWebhookEndpoint } from '../../src/faces/operator/subjects/webhooks.ts';
import { databaseOfTest } from '../support/postgres.ts';

const [ours, foreign] = [createKeyRing([createMasterKey()]), createKeyRing([createMasterKey()])];
const ANN = commandActor('ann');
const now = () => unixMs(Date.now());

let client: pg.Client;
let db: Database;
let lines: string[];
beforeEach(async () => {
  ({ db, client } = await databaseOfTest(6));
  lines = [];
});

const deps = (keyRing = ours) => ({ db, keyRing, now, random: randomBytes });
const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
const signer = (keyRing = ours) => createReceiptSigner({ db, keyRing, log, now, random: randomBytes });

test('processes that start at the same time make one key, and all sign with it', async () => {
  const signers = Array.from({ length: 6 }, () => signer());
  await Promise.all(signers.map(({ prepare }) => prepare()));
  const [key, ...others] = await readPublicReceiptKeys(db);
  expect(others).toEqual([]);
  for (const { currentKey } of signers) expect(Buffer.from((await currentKey())?.publicKey ?? [])).toEqual(key);
  expect(lines).toEqual([]);
});

test('rotations at the same time leave one key that signs, and no private part of the others', async () => {
  await ensureReceiptKey(deps());
  await Promise.all(Array.from({ length: 4 }, () => rotateReceiptKey(deps(), ANN)));
  const { rows } = await client.query(
    'select retired_at is null as signs, sealed is not null as sealed from receipt_keys order by signs desc',
  );
  expect(rows).toEqual([{ signs: true, sealed: true }, ...Array(4).fill({ signs: false, sealed: false })]);
  expect(await signer().currentKey()).not.toBeNull();
});

test('a process that lacks the master key of other secrets makes no signing key, and says why', async () => {
  const projectId = randomUUID();
  await client.query("insert into projects (id, name, network) values ($1, 'shop', 'devnet')", [projectId]);
  const endpoint = {
    id: randomUUID(),
    projectId,
    url: 'https://shop.example/',
    secret: createWebhookSecret(randomBytes),
  };
  await addWebhookEndpoint({ ...deps(foreign), now: now() }, endpoint);
  const lacking = signer();
  await lacking.prepare();
  expect(await lacking.currentKey()).toBeNull();
  expect(await readPublicReceiptKeys(db)).toEqual([]);
  expect(lines).toEqual([expect.stringContaining('encrypted with a master key that this process does not have')]);
});

test('a sealed key that was moved to another row does not open, and is told of once', async () => {
  await ensureReceiptKey(deps());
  const [first] = (await client.query('select sealed from receipt_keys')).rows;
  await rotateReceiptKey(deps(), ANN);
  await client.query('update receipt_keys set sealed = $1 where retired_at is null', [first.sealed]);
  const bent = signer();
  await bent.prepare();
  expect(await bent.currentKey()).toBeNull();
  expect(lines).toEqual([expect.stringContaining('quittance receipt rotate --key-is-lost')]);
});
