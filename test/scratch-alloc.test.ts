import { randomBytes, randomInt, randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { expect, test, beforeAll, afterAll } from 'vitest';
import { createInvoice as create } from '../src/payments/create-invoice.ts';
import { unixMs } from '../src/domain/time.ts';
import { microUsdt } from '../src/domain/money.ts';
import { runSql } from './contract/sql.ts';
import { createTestProject, startTestService, type TestService, type TestProject } from './support/service.ts';
const log = (...a: unknown[]) => appendFileSync('/tmp/r1/alloc.out', `${a.map((x) => typeof x === 'string' ? x : JSON.stringify(x, (_k, v) => typeof v === 'bigint' ? String(v) : v)).join(' ')}\n`);
let service: TestService;
beforeAll(async () => { service = await startTestService(); });
afterAll(() => service.stop());
const sql = async (q: string, p: unknown[] = []) => runSql(service, q, p as never);
const make = (project: TestProject, amount: bigint, policy: 'tail' | 'exact', maxSurchargeMicro = 10000n) =>
  create({ db: service.db, now: () => unixMs(Date.now()), random: (n) => randomBytes(n), randomBelow: (n) => randomInt(n) },
    { keyId: project.keyId, projectId: project.id, policy, maxSurchargeMicro, idempotencyKey: randomUUID(), externalId: randomUUID(), requestedMicro: microUsdt(amount) });
const addMany = (project: TestProject, policy: string, n: number) => sql(
  `insert into addresses (id, project_id, network, account, address, policy, position)
   select gen_random_uuid(), p.id, p.network, substr(sha256((random()::text||g)::bytea),1,20), rpad('T'||g||substr(md5(random()::text),1,20),34,'x'), $2,
   (select coalesce(max(position),0) from addresses where project_id=p.id)+g from projects p, generate_series(1,$3::int) g where p.id=$1`, [project.id, policy, n]);
const fill = (project: TestProject, amount: string, firstN: number, from: number) => sql(
  `insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at)
   select gen_random_uuid(), a.project_id, a.network, a.id, gen_random_uuid()::text, gen_random_uuid()::text, $2::int8, $2::int8, substr(md5(random()::text),1,20), now(), now()
   from addresses a where project_id=$1 and position > $4 and position <= $3`, [project.id, amount, firstN, from]);
async function time(n: number, f: () => Promise<unknown>) { const ms: number[] = []; let last; for (let i = 0; i < n; i++) { const t = performance.now(); last = await f(); ms.push(performance.now() - t); } ms.sort((a, b) => a - b); return { median: ms[n >> 1]?.toFixed(2), max: ms[n - 1]?.toFixed(2), last: (last as { kind: string }).kind }; }

test('exact many', async () => {
  const p = await createTestProject(service.db, { addressCount: 1 });
  await sql(`update projects set policy='exact' where id=$1`, [p.id]);
  await addMany(p, 'exact', 10000);
  await sql('analyze'); 
  log('exact, empty', await time(30, () => make(p, 7_000_000n, 'exact')));
  await fill(p, '5000000', 9500, 1);
  await sql('analyze');
  log('exact, 9,500 of 10,000 taken', await time(30, () => make(p, 5_000_000n, 'exact')));
  const t = performance.now();
  const r = await Promise.all(Array.from({ length: 100 }, () => make(p, 5_000_000n, 'exact')));
  log('100 parallel on it ms', performance.now() - t, r.filter((x) => x.kind === 'created').length);
  await fill(p, '5000000', 10001, 9500).catch(() => 0);
  await sql(`insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at)
   select gen_random_uuid(), a.project_id, a.network, a.id, gen_random_uuid()::text, gen_random_uuid()::text, 5000000, 5000000, substr(md5(random()::text),1,20), now(), now() from addresses a where project_id=$1 and policy='exact' on conflict do nothing`, [p.id]);
  log('exact exhausted', await time(20, () => make(p, 5_000_000n, 'exact')));
}, 120000);

test('tail many full', async () => {
  const p = await createTestProject(service.db, { addressCount: 1, maxSurchargeMicro: 100n });
  await addMany(p, 'tail', 2000);
  await sql(`insert into full_ranges select id, 3000000, 3000100 from addresses where project_id=$1 and position <= 1900`, [p.id]);
  await sql('analyze');
  log('tail, empty', await time(30, () => make(p, 4_000_000n, 'tail', 100n)));
  log('tail, 1,900 of 2,001 full', await time(30, () => make(p, 3_000_000n, 'tail', 100n)));
}, 120000);

test('exhausted with surcharge 1', async () => {
  const p = await createTestProject(service.db, { addressCount: 0 as never, maxSurchargeMicro: 1000000n }).catch(async () => createTestProject(service.db, { maxSurchargeMicro: 1000000n }));
  await sql(`update addresses set retired_at = now() where project_id=$1`, [p.id]);
  log('exhausted, surcharge 1 USDT', await time(10, () => make(p, 3_000_000n, 'tail', 1000000n)));
  const p2 = await createTestProject(service.db, { addressCount: 1 });
  await sql(`update addresses set retired_at = now() where project_id=$1`, [p2.id]);
  log('exhausted, surcharge 0.01 USDT', await time(30, () => make(p2, 3_000_000n, 'tail')));
  // a project at 1 USDT, one address nearly full
  const p3 = await createTestProject(service.db, { addressCount: 1, maxSurchargeMicro: 1000000n });
  const { codeWords, wordRange } = await import('../src/domain/code-word.ts');
  const words = codeWords(wordRange(microUsdt(3_000_000n), 1000000n)).slice(0, -10);
  await sql(`insert into invoices (id, project_id, network, address_id, idempotency_key, external_id, requested_micro, payable_micro, checkout_token, created_at, expires_at)
   select gen_random_uuid(), a.project_id, a.network, a.id, gen_random_uuid()::text, gen_random_uuid()::text, 3000000, w, substr(md5(random()::text||w),1,20), now(), now() from addresses a, unnest($2::int8[]) w where project_id=$1`, [p3.id, words.map(String)]);
  log('nearly full 90,000', await time(8, () => make(p3, 3_000_000n, 'tail', 1000000n)));
}, 120000);

test('switching and creating', async () => {
  const p = await createTestProject(service.db, { addressCount: 3, maxSurchargeMicro: 100n });
  await addMany(p, 'exact', 30);
  await addMany(p, 'tail', 10);
  let stop = false;
  const toggles = (async () => { while (!stop) {
    await sql(`update projects set policy = case policy when 'tail' then 'exact' else 'tail' end where id=$1`, [p.id]);
    await sql(`update addresses set retired_at = case when retired_at is null and random() < 0.3 then now() end where project_id=$1 and position % 3 = $2::int`, [p.id, randomInt(3)]);
    await sql(`update projects set max_surcharge_micro = $2::int8 where id=$1`, [p.id, String(100 + randomInt(3) * 50)]);
  } })();
  const kinds = new Map<string, number>();
  for (let i = 0; i < 12; i++) {
    const rs = await Promise.all(Array.from({ length: 25 }, () => make(p, BigInt(1_000_000 + randomInt(4) * 30), randomInt(2) ? 'tail' : 'exact', 100n).catch((e: Error) => ({ kind: `ERR ${e.message}` }))));
    for (const { kind } of rs) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  stop = true; await toggles;
  log('switching', Object.fromEntries(kinds));
  log('bad', await sql(`select a.policy, count(*) from invoices i join addresses a on a.id=i.address_id where i.project_id=$1 and (a.policy='exact') <> (i.payable_micro=i.requested_micro and true) group by 1`, [p.id]));
  log('full_ranges false', await sql(`select f.*, (select count(*) from invoices i where i.address_id=f.address_id and payable_micro>=f.from_micro and payable_micro<f.below_micro) n from full_ranges f join addresses a on a.id=f.address_id where a.project_id=$1`, [p.id]).then((r: unknown) => JSON.stringify(r).slice(0, 600)));
}, 120000);

test('200 at the end, exact and tail', async () => {
  const p = await createTestProject(service.db, { addressCount: 1, maxSurchargeMicro: 100n });
  await addMany(p, 'exact', 200); await addMany(p, 'tail', 22);
  for (const policy of ['tail', 'exact'] as const) {
    await sql(`update projects set policy=$2 where id=$1`, [p.id, policy]);
    const t = performance.now();
    const rs = await Promise.all(Array.from({ length: 215 }, () => make(p, 2_000_000n, policy, 100n).catch((e: Error) => ({ kind: `ERR ${e.message}` }))));
    const k: Record<string, number> = {}; for (const r of rs) k[r.kind] = (k[r.kind] ?? 0) + 1;
    log('end', policy, k, performance.now() - t);
  }
}, 120000);
