import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/core/store/db/schema-changes.ts';
import { signOffList } from '../rules/sign-off-list.ts';
import { createInvoice, payExactly, startTestService, type TestService, untilStatus } from '../support/service.ts';

const ROOT = join(import.meta.dirname, '../..');
const page = readFileSync(join(ROOT, 'docs/contributing/audit-guide.md'), 'utf8');
const promises = [...page.matchAll(/^\| ([^|]+) \| `(\w+)` \| `([^`]+)` \| `([^`]+)` \| `([^`]+)` \|$/gm)].map(
  ([, promise = '', constraint = '', code = '', proof = '', sql = '']) => ({ promise, constraint, code, proof, sql }),
);

let service: TestService;
let owner: pg.Client;
beforeAll(async () => {
  service = await startTestService();
  const { body: invoice } = await createInvoice(service);
  await createInvoice(service);
  await payExactly(service, invoice.invoiceId);
  service.devnet.mineUntilSolid();
  await untilStatus(service, invoice.invoiceId, 'PAID');
  owner = new pg.Client(service.ownerString);
  await owner.connect();
  await owner.query(`insert into operator_actions (acted_at, actor_kind, acted_by, origin, action, subject, detail)
    values (now(), 'cli', 'somebody', 'here', 'test.act', 'this', '{}')`);
});
afterAll(async () => {
  await owner?.end();
  await service?.stop();
});

test('the guide has a row for each promise', () => {
  expect(promises.length).toBeGreaterThan(12);
});

test.each(promises)('$promise', async ({ constraint, code, proof, sql }) => {
  const schema = readFileSync(SCHEMA_FILE, 'utf8');
  expect(schema).toContain(`.${constraint}":`);
  for (const path of [code, proof]) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  await owner.query('begin');
  try {
    // A guard that is a trigger names no constraint, so without it the statement must go through.
    const refusal = await owner.query(sql).then(
      ({ rowCount }) => `${rowCount} rows`,
      (error: pg.DatabaseError) => error.constraint ?? error.message,
    );
    expect(refusal).not.toMatch(/^\d+ rows$/);
    if (!new RegExp(`"trigger \\w+\\.${constraint}"`).test(schema)) return expect(refusal).toBe(constraint);
    await owner.query('rollback');
    await owner.query('begin');
    const table = /(?:into|update|from) (\w+)/.exec(sql)?.[1];
    await owner.query(`alter table ${table} disable trigger ${constraint}`);
    const unguarded = await owner.query(sql).then(
      ({ rowCount }) => `${rowCount} rows`,
      (error: pg.DatabaseError) => error.message,
    );
    expect(unguarded).not.toBe(refusal);
  } finally {
    await owner.query('rollback');
  }
});

test('the list to sign off is there, in 27 files or fewer with 5,000 lines or fewer', () => {
  const files = signOffList();
  const lines = files.map((path) => readFileSync(join(ROOT, path), 'utf8').split('\n').length - 1);
  expect(files.length).toBeGreaterThan(20);
  expect(files.length).toBeLessThanOrEqual(27);
  expect(lines.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(5000);
});
