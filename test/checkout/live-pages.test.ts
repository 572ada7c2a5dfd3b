import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/service.ts';
import { longTest } from '../support/some-cases.ts';
import { createLiveFixture, follow, READER } from './live-fixture.ts';

async function fixtureOfTest() {
  const fixture = await createLiveFixture();
  onTestFinished(() => fixture.close());
  return fixture;
}

/** Longer than any test. */
const NEVER_MS = 3_600_000;

test('a page is told its whole self first, and then only what changes', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const pages = await fixture.pages({ lookMs: NEVER_MS });
  const { reported } = await follow(pages, invoice);
  expect(reported).toHaveLength(1);
  expect(reported[0]).toMatchObject({
    state: 'waiting',
    parts: { status: expect.any(String), pay: expect.any(String) },
  });
  await fixture.setStatus('EXPIRED', [invoice]);
  await eventually(
    () => reported.length,
    (length) => length === 2,
  );
  expect(reported[1]?.state).toBe('expired');
  expect(Object.keys(reported[1]?.parts ?? {})).toContain('status');
  expect(Object.keys(reported[1]?.parts ?? {})).not.toContain('pay');
});

test('a reader who shows the present version already is told nothing until it changes', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const pages = await fixture.pages({ lookMs: NEVER_MS });
  const { reported } = await follow(pages, invoice);
  const page = await pages.open(invoice.token, READER);
  const toldLater: string[] = [];
  page?.start(reported[0]?.version ?? '', ({ state, parts }) => toldLater.push(state, ...Object.keys(parts)));
  expect(toldLater).toEqual([]);
  await fixture.setStatus('EXPIRED', [invoice]);
  await eventually(
    () => toldLater,
    ([state]) => state === 'expired',
  );
  expect(toldLater).not.toContain('pay');
});

test('a change is read once, however many pages show it, and what no page shows is not read', async () => {
  const fixture = await fixtureOfTest();
  const [shown, other] = [await fixture.invoice(), await fixture.invoice()];
  const pages = await fixture.pages({ lookMs: NEVER_MS });
  const all = await Promise.all(Array.from({ length: 20 }, () => follow(pages, shown)));
  expect(await fixture.queries('invoices')).toBe(1);
  await fixture.setStatus('EXPIRED', [other]);
  await fixture.setStatus('EXPIRED', [shown]);
  await eventually(
    () => all.filter(({ reported }) => reported.at(-1)?.state === 'expired').length,
    (count) => count === all.length,
  );
  expect(await fixture.queries('invoices')).toBe(2);
});

longTest(
  '1,200 links are read with 500 in a query, when they are opened, when they change together and when nothing was heard',
  async () => {
    const fixture = await fixtureOfTest();
    const invoices = await fixture.invoices(1200);
    const pages = await fixture.pages({ lookMs: NEVER_MS });
    const all = await Promise.all(invoices.map((invoice) => follow(pages, invoice)));
    expect(await fixture.queries('invoices')).toBe(3);
    await fixture.setStatus('EXPIRED', invoices);
    const tellAll = (state: string) =>
      eventually(
        () => all.filter(({ reported }) => reported.at(-1)?.state === state).length,
        (count) => count === all.length,
      );
    await tellAll('expired');
    // PostgreSQL may deliver notifications in pieces of 8 KB, each of which is handled at once.
    expect(await fixture.queries('invoices')).toBeLessThanOrEqual(3 + 11);
    const unheard = await fixture.pages({ lookMs: 50, sweepMs: 50 });
    await fixture.sql("set session_replication_role = 'replica'");
    const swept = await Promise.all(invoices.slice(0, 3).map((invoice) => follow(unheard, invoice)));
    await fixture.setStatus('PENDING', invoices);
    await eventually(
      () => swept.map(({ reported }) => reported.at(-1)?.state),
      (states) => states.every((state) => state === 'waiting'),
    );
  },
);

test('one query is under way at a time, whatever is asked, so that no page goes back in time', async () => {
  const fixture = await fixtureOfTest();
  const { db } = fixture.deps;
  let [underWay, most, queries] = [0, 0, 0];
  fixture.deps.db = {
    ...db,
    run: async (statement, parameters) => {
      underWay += 1;
      queries += 1;
      most = Math.max(most, underWay);
      return db.run(statement, parameters).finally(() => {
        underWay -= 1;
      });
    },
  };
  const pages = await fixture.pages({ lookMs: 1, sweepMs: 1 });
  const invoices = await fixture.invoices(10);
  const all = await Promise.all(invoices.map((invoice) => follow(pages, invoice)));
  for (let round = 0; round < 20; round++) {
    await fixture.setStatus(round % 2 === 0 ? 'EXPIRED' : 'PENDING', invoices);
    await Promise.all(invoices.map(({ token }) => pages.read(token)));
  }
  await fixture.setStatus('EXPIRED', invoices);
  await eventually(
    () => all.map(({ reported }) => reported.at(-1)?.state),
    (states) => states.every((state) => state === 'expired'),
  );
  expect(most).toBe(1);
  expect(queries).toBeGreaterThan(20);
  // Two consecutive messages are never equal.
  for (const { reported } of all) {
    expect(reported.every(({ version }, index) => version !== reported[index - 1]?.version)).toBe(true);
  }
});

test('while no page is open nothing is asked', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const pages = await fixture.pages({ lookMs: 5, sweepMs: 5 });
  const { page } = await follow(pages, invoice);
  await eventually(
    () => fixture.queries('heads'),
    (count) => count >= 3,
  );
  page.close();
  page.close();
  const asked = async () => (await fixture.queries('heads')) + (await fixture.queries('invoices'));
  // Waits for the current round, if there is one.
  let [before, now] = [-1, await asked()];
  await eventually(
    async () => {
      [before, now] = [now, await asked()];
      return now - before;
    },
    (more) => more === 0,
  );
  await fixture.setStatus('EXPIRED', [invoice]);
  const { reported } = await follow(await fixture.pages({ lookMs: NEVER_MS }), invoice);
  expect(reported).toHaveLength(1);
  // For the other page, but not for the first one.
  expect(await asked()).toBe(now + 1);
});

test('each block moves the progress of a payment, and a replaced block says that it is gone', async () => {
  const fixture = await fixtureOfTest();
  const [paying, waiting] = [await fixture.invoice(), await fixture.invoice()];
  const pages = await fixture.pages({ lookMs: 10, sweepMs: NEVER_MS });
  const [one, other] = [await follow(pages, paying), await follow(pages, waiting)];
  const shows = (text: string) =>
    eventually(
      () => Object.values(one.reported.at(-1)?.parts ?? {}).join(),
      (html) => html.includes(text),
    );
  await fixture.mine();
  await fixture.detect(paying);
  await shows('value="1"');
  await fixture.mine();
  await shows('value="2"');
  expect(Object.keys(one.reported.at(-1)?.parts ?? {})).toEqual(['progress']);
  await fixture.orphan();
  await fixture.sql('delete from sightings');
  await fixture.setStatus('PENDING', [paying]);
  await shows('replaced the block');
  // Blocks alone don't change a waiting page.
  expect(other.reported).toHaveLength(1);
});

test('a page that heard nothing of blocks for a minute turns blind by time alone, and sees again with the next', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const { reported } = await follow(await fixture.pages({ lookMs: 10, sweepMs: NEVER_MS }), invoice);
  fixture.advance(58_000);
  await fixture.mine();
  const says = (isBlind: boolean) =>
    eventually(
      () => reported.at(-1)?.parts.status ?? '',
      (status) => status.includes('We cannot see the TRON network') === isBlind,
    );
  fixture.advance(4500);
  await says(true);
  await fixture.mine();
  await says(false);
  expect(reported.map(({ parts }) => Object.keys(parts).includes('pay'))).toEqual([true, false, false]);
});

test('after the connection that listens was lost every open page is read again', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const { reported } = await follow(await fixture.pages({ lookMs: 20, sweepMs: NEVER_MS }), invoice);
  await fixture.sql("set session_replication_role = 'replica'");
  await fixture.setStatus('EXPIRED', [invoice]);
  await fixture.sql(
    "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()",
  );
  await eventually(
    () => reported.at(-1)?.state,
    (state) => state === 'expired',
  );
});

test('a database that is away is told of once, and pages stay open and go on when it is back', async () => {
  const fixture = await fixtureOfTest();
  const [invoice, unopened] = [await fixture.invoice(), await fixture.invoice()];
  const pages = await fixture.pages({ lookMs: 10, sweepMs: NEVER_MS });
  const { reported } = await follow(pages, invoice);
  // Every statement fails, as on a server that is shutting down.
  await fixture.sql('alter table chain_cursors rename to away');
  const warned = () => fixture.logged.filter((line) => line.includes('failed; retrying'));
  await eventually(warned, ({ length }) => length > 0);
  await expect(pages.open(unopened.token, READER)).rejects.toThrow();
  expect(pages.hasRoom(unopened.token)).toBe(true);
  await fixture.setStatus('EXPIRED', [invoice]);
  fixture.advance(60_000);
  await eventually(
    () => reported.at(-1)?.parts.status ?? '',
    (status) => status.includes('We cannot see the TRON network'),
  );
  await fixture.sql('alter table away rename to chain_cursors');
  await eventually(
    () => reported.at(-1)?.shopState,
    (state) => state === 'expired',
  );
  await eventually(
    () => fixture.logged.filter((line) => line.includes('works again')).length,
    (count) => count === 1,
  );
  expect(warned()).toHaveLength(1);
});

test('nothing is kept of a page that was closed or never was', async () => {
  const fixture = await fixtureOfTest();
  const invoice = await fixture.invoice();
  const pages = await fixture.pages({ lookMs: NEVER_MS });
  const openPages = async () => (await fixture.metrics.openPages.get()).values[0]?.value;
  expect(await pages.open('1111111111111111111111', READER)).toBeNull();
  expect(await openPages()).toBe(0);
  const all = await Promise.all(Array.from({ length: 20 }, () => follow(pages, invoice)));
  expect(await openPages()).toBe(20);
  expect(pages.hasRoom(invoice.token)).toBe(false);
  for (const { page } of all) page.close();
  expect(await openPages()).toBe(0);
  expect(pages.hasRoom(invoice.token)).toBe(true);
});
