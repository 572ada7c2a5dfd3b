import { expect, test } from 'vitest';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { recordActions } from '../../../src/faces/operator/record-actions.ts';
import { ANN, joinByPasskey } from '../../people/desk.ts';
import { openConsole } from '../open-console.ts';
import { cookieOf } from './ask-again.ts';

const AUDIT = '/settings/audit';
const SHOP = '0199a3c0-0000-7000-8000-000000000001';
const ODD = '<script>alert(1)</script>';

/** An owner, and a log of 120 entries by someone with an odd name, about every kind of subject. */
async function openLog() {
  const desk = await openConsole();
  const ann = await joinByPasskey(desk, 'ann');
  const subjects = [encodeId('inv', SHOP), encodeId('trf', SHOP), encodeId('usr', SHOP), ODD];
  const entries = Array.from({ length: 120 }, (_, n) => ({
    ...{ projectId: null, action: 'transfer.resolved' as const, subject: subjects[n % 4] ?? '' },
    detail: { resolution: 'ignored', seenAt: null, note: `=1+${n} ${ODD}`, toProjects: ['a', 'b'], sum: { left: n } },
  }));
  const eve = { ...ANN, name: 'ﻉ'.repeat(100), origin: '198.51.100.9' };
  await recordActions(desk.db, eve, desk.deps.now(), entries);
  const ask = (path: string) => desk.ask(path, { cookie: cookieOf(ann.token) });
  return { ...desk, look: ask, eve };
}

test('the log is read page by page, the newest first, with its details in words and nothing of it as markup', async () => {
  const { look } = await openLog();
  const seen: number[] = [];
  let path: string | undefined = AUDIT;
  for (; path !== undefined; ) {
    const { status, text }: { status: number; text: string } = await look(path);
    expect([status, text.includes(ODD)]).toEqual([200, false]);
    seen.push(...[...text.matchAll(/data-label="No\."[^>]*><span>(\d+)</g)].map(([, seq]) => Number(seq)));
    path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll('&amp;', '&');
  }
  expect(seen).toEqual(Array.from({ length: seen.length }, (_, n) => seen.length - n));
  expect(seen.length).toBeGreaterThan(120);
  const { text } = await look(AUDIT);
  for (const shown of [
    'resolved the transfer',
    'to projects',
    'a, b',
    '&lt;script&gt;',
    'command, <bdi>198.51.100.9',
  ]) {
    expect(text).toContain(shown);
  }
  expect(text).not.toContain('seen at');
  for (const [kind, place] of [
    ['inv', '/invoices/'],
    ['trf', '/unmatched/'],
    ['usr', '/settings/people/'],
  ] as const) {
    expect(text).toContain(`href="${place}${encodeId(kind, SHOP)}"`);
  }
});

test('filters by action, subject and person stand in the address, and in that of the next page and of the export', async () => {
  const { look, eve } = await openLog();
  const by = new URLSearchParams({ by: eve.name, action: 'transfer.resolved' }).toString();
  const { text } = await look(`${AUDIT}?${by}`);
  expect(text.match(/<tr role="row"><td/g)).toHaveLength(50);
  expect(text).not.toContain('user.joined</small>');
  const next = /rel="next" href="([^"]+)"/.exec(text)?.[1] ?? '';
  for (const part of ['action=transfer.resolved', 'by=%EF', 'before=']) expect(next).toContain(part);
  expect(text.includes(`href="/settings/audit.csv?${by.replace('&', '&amp;')}"`)).toBe(true);
  const one = await look(`${AUDIT}?${new URLSearchParams({ subject: ODD })}`);
  expect(one.text.match(/<tr role="row"><td/g)).toHaveLength(30);
  expect((await look(`${AUDIT}?action=key.created`)).text).toContain('No matching entries');
});

test.each([
  ['before=0', 'must be an entry number'],
  ['before=x', 'must be an entry number'],
  [`by=${'x'.repeat(201)}`, '“By” must have 1 to 200'],
  [`subject=${'x'.repeat(201)}`, '“On” must have 1 to 200'],
  ['action=a&action=b', 'was sent 2 times'],
  ['by=%00', 'cannot be stored'],
  ['odd=1', 'is not a field of this form'],
])('a query that cannot be read is told: %#', async (query, says) => {
  const { look } = await openLog();
  const { status, text } = await look(`${AUDIT}?${query}`);
  expect([status, text.includes(says)]).toEqual([400, true]);
});

test('the export holds every entry that fits, for programs and for spreadsheets, where no cell is run as a formula', async () => {
  const { look } = await openLog();
  const csv = await look('/settings/audit.csv?action=transfer.resolved');
  expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"');
  const lines = csv.text.trimEnd().split('\r\n');
  expect(lines).toHaveLength(121);
  expect(lines[0]).toBe(
    'number,at,actorKind,actorId,actor,origin,requestId,action,subject,projectId,detail,hash,sound',
  );
  const json = await look('/settings/audit.json?action=transfer.resolved');
  const { data } = JSON.parse(json.text);
  expect([json.headers.get('content-type'), data.length]).toEqual(['application/json; charset=utf-8', 120]);
  expect(JSON.parse(data[0].detail)).toMatchObject({ resolution: 'ignored' });
});

test('the log is found whole, or it is said where it breaks', async () => {
  const { look, sql } = await openLog();
  const whole = await look(`${AUDIT}/verification`);
  const [, entries] = /The log is intact: (\d+) entries/.exec(whole.text) ?? [];
  const [, head = ''] = /data-copy="(\d+:[0-9a-f]{64})"/.exec(whole.text) ?? [];
  expect(head.startsWith(`${entries}:`)).toBe(true);
  const compared = await look(`${AUDIT}/verification?${new URLSearchParams({ head })}`);
  expect(compared.text).toContain('has not been rewritten since');
  const rewritten = await look(`${AUDIT}/verification?head=${entries}:${'0'.repeat(64)}`);
  expect(rewritten.text).toContain('had a different hash in an earlier check');
  expect((await look(`${AUDIT}/verification?head=odd`)).status).toBe(400);
  await sql('alter table operator_actions disable trigger all');
  await sql(`update operator_actions set acted_by = 'nobody' where seq = 7`);
  const broken = await look(`${AUDIT}/verification`);
  expect(broken.text).toContain('role="alert"');
  expect(broken.text).toContain('entry 7 or the previous entry was modified');
  expect(broken.text).toContain('The 6 entries before that');
});
