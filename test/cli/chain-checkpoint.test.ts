import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CheckpointFile } from '../../src/core/chain/proof/checkpoints.ts';
import { loadProducers, refreshProducers } from '../../src/core/chain/verify/producers.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { clearHalt, setHalt, updateCursor } from '../../src/core/store/chain/cursor.ts';
import { type Books, startBooks } from '../support/books.ts';
import { letRowsStandAlone } from '../support/stand-alone.ts';
import { type CliOutput, envOf, newDirectory, runCli } from './run-cli.ts';

let books: Books;
let made: CheckpointFile;
beforeAll(async () => {
  books = await startBooks();
  // The cursor moves here without the blocks in between.
  await letRowsStandAlone(books.database.owner);
  const { code, stdout } = await run();
  expect(code).toBe(0);
  made = JSON.parse(stdout);
  await goOn(60);
});
afterAll(() => books.stop());

function run(...args: string[]): Promise<CliOutput> {
  return runCli(['chain', 'checkpoint', ...args], { env: envOf(books) });
}

/** Extends the chain and the ledger. */
async function goOn(blocks: number): Promise<void> {
  const { devnet, db, pool, node } = books;
  devnet.mine(blocks);
  const { number, id, timestampMs } = devnet.solid();
  await updateCursor(db, 'devnet', { number, id, time: unixMs(timestampMs) });
  const reported = { clock: books.now(), suspect: null };
  const known = await loadProducers(db, 'devnet');
  await refreshProducers({ db, network: 'devnet', agreement: 1, pool }, [node], known, reported);
}

function check(content: unknown, ...args: string[]): Promise<CliOutput> {
  const path = join(newDirectory(), 'checkpoint.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return run('--check', path, ...args);
}

/** The checkpoint with one change. */
function altered(change: Partial<CheckpointFile>): CheckpointFile {
  return { ...made, ...change };
}

const wrongKey = ({ producers }: CheckpointFile): CheckpointFile['producers'] =>
  producers.map(({ address, signer }, index) =>
    index === 0 ? { address, signer: producers[1]?.signer ?? signer } : { address, signer },
  );

test('a checkpoint is where the ledger stands, with the producers in force and the keys that they sign with', async () => {
  expect(made).toMatchObject({ network: 'devnet', id: expect.stringMatching(/^[0-9a-f]{64}$/) });
  const witnesses = books.devnet.witnesses().map(({ address, signerAddress }) => ({ address, signer: signerAddress }));
  expect([...made.producers].sort(byAddress)).toEqual(witnesses.sort(byAddress));
  const { json } = await run('--json');
  expect(json.number).toBe(books.devnet.solid().number);
});

test('one that is right is good, to every operator and by the ledger', async () => {
  const { code, json } = await check(made, '--json');
  expect(json).toMatchObject({
    ...{ number: made.number, id: made.id, isGood: true, leadsTo: made.producers.length },
    nodes: [{ origin: books.node.origin, shows: 'same' }],
  });
  expect(code).toBe(0);
  expect((await check(made)).stdout).toMatch(/^verdict +good$/m);
});

test.each<[string, () => Promise<CheckpointFile> | CheckpointFile, object]>([
  [
    'of a block that is not on the chain',
    () => altered({ id: `${made.id.slice(0, 16)}${'ab'.repeat(24)}` }),
    { isShown: false, nodes: [{ shows: 'another' }] },
  ],
  ['with a key that nobody signed with', () => altered({ producers: wrongKey(made) }), { isRecorded: false }],
])('one %s is not good', async (_, alter, seen) => {
  const { code, json } = await check(await alter(), '--json');
  expect(json).toMatchObject({ isGood: false, ...seen });
  expect(code).toBe(1);
});

test.each<[string, () => unknown, string]>([
  ['above the ledger', () => ({ ...made, ...atHeight(books.devnet.head().number) }), 'the ledger is only at'],
  ['of another network than is asked for', () => altered({ network: 'nile' }), 'is not configured here'],
  ['without producers', () => altered({ producers: [] }), 'this is not a checkpoint: "producers"'],
  ['whose id is of another height', () => altered({ number: made.number + 1 }), `is not the id of block`],
  ['whose time is none', () => altered({ time: 'yesterday' }), '"time" is not a valid time'],
  ['of no network', () => altered({ network: 'moon' }), '"network" is not a network'],
  ['with a mistyped address', () => altered({ producers: [{ address: 'T', signer: 'T' }] }), 'a producer has no'],
  [
    'with a producer twice',
    () => altered({ producers: made.producers.flatMap((each) => [each, each]) }),
    'a producer appears twice',
  ],
  ['that is no JSON', () => '{', 'is not valid JSON'],
  ['that is no object', () => 'null', 'this is not a checkpoint'],
])('a file %s is refused in words', async (_, content, message) => {
  const { code, stderr } = await check(content());
  expect(stderr).toContain(message);
  expect(code).toBe(2);
});

test('a file that is not there is refused in words', async () => {
  const { code, stderr } = await run('--check', join(newDirectory(), 'nothing.json'));
  expect([code, stderr]).toEqual([2, expect.stringContaining('does not exist')]);
});

test('nothing is made of a ledger that is halted', async () => {
  await setHalt(books.db, 'devnet', 'block 7 contradicts');
  const { code, stderr } = await run();
  expect([code, stderr]).toEqual([4, expect.stringContaining('is halted')]);
  await clearHalt(books.db, 'devnet');
});

test('it stays good while votes replace as many producers as cannot decide, and leads nowhere after one that replaces more', async () => {
  books.devnet.replaceProducers(1);
  await goOn(60);
  expect((await check(made, '--json')).json).toMatchObject({ isGood: true, leadsTo: made.producers.length - 1 });
  books.devnet.replaceProducers(2);
  books.devnet.mine(60);
  const { number, id, timestampMs } = books.devnet.solid();
  await updateCursor(books.db, 'devnet', { number, id, time: unixMs(timestampMs) });
  const { code, stderr } = await check(made);
  expect([code, stderr]).toEqual([1, expect.stringContaining('which has a newer checkpoint')]);
});

function atHeight(number: number): Pick<CheckpointFile, 'number' | 'id'> {
  return { number, id: `${number.toString(16).padStart(16, '0')}${'ab'.repeat(24)}` };
}

function byAddress(left: { address: string }, right: { address: string }): number {
  return left.address < right.address ? -1 : 1;
}
