import { afterEach, expect, test } from 'vitest';
import { LONG_RANGE_BLOCKS } from '../../src/core/chain/verify/read-block.ts';
import { longTest, someCases } from '../support/some-cases.ts';
import {
  createAttackChain,
  directTransfer,
  innerTransfer,
  pause,
  type RpcLog,
  type Transaction,
} from './attack-chain.ts';
import { type AttackNode, createAttackNode, type Lies } from './attack-node.ts';
import { type AttackWorld, createAttackWorld } from './attack-world.ts';

const RPC = '/jsonrpc';
const INFOS = '/wallet/gettransactioninfobyblocknum';
const RUN_BLOCKS = 25;
const MISSED_BLOCKS = 160;
const SPECIAL_EVERY = 20;
const STRANGER = '33'.repeat(20);
const OTHER_STRANGER = '44'.repeat(20);

let world: AttackWorld | null = null;
afterEach(async () => {
  await world?.stop();
  world = null;
});

/** The usual traffic of the main network: a direct transfer and one inside a contract, between strangers. */
const traffic = () => [directTransfer(STRANGER, 7n), innerTransfer(OTHER_STRANGER, 5n)];

/** Creates a watcher that has missed many blocks; the transactions in `special` are in some of them, in order. */
async function missMuch({ operators, special }: { operators: number; special(invoices: Payable[]): Transaction[][] }) {
  const chain = createAttackChain();
  chain.mine();
  const nodes = Array.from({ length: operators }, (_, index) => createAttackNode(`node-${index}`, chain));
  const made = await createAttackWorld({ chain, nodes, agreement: operators });
  world = made;
  const invoices = [await made.invoice(), await made.invoice()];
  await made.run(RUN_BLOCKS, traffic);
  const extra = special(invoices);
  const start = chain.head().number;
  let mined = 0;
  made.restartAfter(MISSED_BLOCKS, () => {
    mined += 1;
    return [...traffic(), ...((mined % SPECIAL_EVERY === 0 ? extra.shift() : null) ?? [])];
  });
  for (const { requests } of nodes) requests.clear();
  return { world: made, nodes, chain, start };
}

type Payable = { account: string; amount: bigint };

const bothWays = ([first, second]: Payable[]): Transaction[][] => [
  [directTransfer(first?.account ?? '', first?.amount ?? 0n)],
  [innerTransfer(second?.account ?? '', second?.amount ?? 0n)],
];

async function catchUp({ world }: Awaited<ReturnType<typeof missMuch>>) {
  for (let steps = 0; steps < 5; steps += 1) await world.step();
  await world.run(8, traffic);
  expect(world.behind()).toBe(0);
  expect(await world.inventions()).toEqual([]);
}

const asked = ({ requests }: AttackNode, path: string) => requests.get(path) ?? 0;

test.each([1, 2])('with %i operators, infos are asked for only where a contract paid', async (operators) => {
  const missed = await missMuch({ operators, special: bothWays });
  const { chain, start } = missed;
  const heights: number[] = [];
  const last = chain.solid().number;
  for (const node of missed.nodes) {
    node.lies = {
      answer: ({ path, body: { num = 0 } }) => {
        if (path === INFOS && num <= last) heights.push(num - start);
        return undefined;
      },
    };
  }
  await catchUp(missed);
  expect(await missed.world.statuses()).toEqual(['PAID', 'PAID']);
  // No block before the first one has logs, which would prove that its own are complete.
  const expected = [-RUN_BLOCKS + 1, 2 * SPECIAL_EVERY].flatMap((height) => missed.nodes.map(() => height));
  expect(heights).toEqual(expected);
  for (const node of missed.nodes) {
    expect(asked(node, RPC)).toBeLessThanOrEqual(Math.ceil(MISSED_BLOCKS / LONG_RANGE_BLOCKS) + 2);
  }
  expect(missed.world.errors).toEqual([]);
});

longTest('money that leaves an address of ours is recorded', async () => {
  const special = ([first]: Payable[]) => [[innerTransfer(STRANGER, 3n, first?.account)]];
  const missed = await missMuch({ operators: 2, special });
  await catchUp(missed);
  const [row] = await missed.world.query('select count(*)::int as count from outgoing_transfers');
  expect(row.count).toBe(1);
});

test('an event of the contract itself is an alarm', async () => {
  const missed = await missMuch({ operators: 2, special: () => [[pause()]] });
  await catchUp(missed);
  expect(await missed.world.alarms()).toContain('contract-paused');
});

const isTo = (log: RpcLog, account: string) => log.topics[2]?.endsWith(account) ?? false;
/** Invoices may share an address. */
const pays = (log: RpcLog, { account, amount }: Payable) => isTo(log, account) && BigInt(log.data) === amount;
const numberOf = ({ blockNumber }: RpcLog) => Number(blockNumber);
const answered = (answer: object | 'refuse'): Lies => ({ answer: ({ path }) => (path === RPC ? answer : undefined) });

/** Lies about an answer that should contain the payment, whose position is `at`. */
const cut = (lie: (logs: RpcLog[], at: number) => RpcLog[], paid: Payable | undefined): Lies => ({
  logs: (logs) => {
    const at = logs.findIndex((log) => pays(log, paid as Payable));
    return at < 0 ? logs : lie(logs, at);
  },
});
const firstBytes = (logs: RpcLog[], most: number) =>
  logs.filter((_, index) => JSON.stringify(logs.slice(0, index + 1)).length <= most);

type LiesAbout = (payables: Payable[]) => Lies;

/** Each node has its own lies, or none. */
async function expectPaid(...liesOf: LiesAbout[]) {
  let payables: Payable[] = [];
  const missed = await missMuch({
    operators: 2,
    special: (invoices) => {
      payables = invoices;
      return bothWays(invoices);
    },
  });
  for (const [index, liesAbout] of liesOf.entries()) (missed.nodes[index] as AttackNode).lies = liesAbout(payables);
  await catchUp(missed);
  expect(await missed.world.statuses()).toEqual(['PAID', 'PAID']);
}

test.each<[string, LiesAbout]>(
  someCases(
    [
      ['has no index', () => ({ logs: () => [] })],
      ['has an index of every third block', () => ({ logs: (logs) => logs.filter((log) => numberOf(log) % 3 === 0) })],
      ['lacks a direct payment', ([paid]) => ({ logs: (logs) => logs.filter((log) => !pays(log, paid as Payable)) })],
      [
        'shows the logs of other blocks',
        () => ({ logs: (logs) => logs.map((log) => ({ ...log, blockHash: logs[0]?.blockHash ?? '' })) }),
      ],
      [
        'shows logs of no transaction',
        () => ({ logs: (logs) => logs.map((log) => ({ ...log, transactionHash: '0x00' })) }),
      ],
      [
        'shows a payment under another transaction',
        ([, paid]) => ({
          logs: (logs) =>
            logs.map((log) => (pays(log, paid as Payable) ? { ...log, transactionHash: `0x${'ab'.repeat(32)}` } : log)),
        }),
      ],
      ['shows what is no log', () => ({ logs: (logs) => logs.map(() => null as never) })],
      ['shows an error', () => answered({ jsonrpc: '2.0', id: 1, error: { code: -32005, message: 'limit exceeded' } })],
      ['shows no list', () => answered({ jsonrpc: '2.0', id: 1, result: 'x' })],
      ['refuses', () => answered('refuse')],
      ['ends just before a payment by a contract', ([, paid]) => cut((logs, at) => logs.slice(0, at), paid)],
      ['begins just after a payment by a contract', ([, paid]) => cut((logs, at) => logs.slice(at + 1), paid)],
      [
        'is newest first, and ends just before a payment by a contract',
        ([, paid]) => cut((logs, at) => logs.slice(at + 1).reverse(), paid),
      ],
      [
        'is a page, without the logs on both sides of it',
        ([, paid]) => cut((logs, at) => logs.slice(Math.max(0, at - 3), at), paid),
      ],
      [
        'ends at a number of bytes',
        ([, paid]) => cut((logs, at) => firstBytes(logs, JSON.stringify(logs.slice(0, at)).length), paid),
      ],
      ['shows each log twice', () => ({ logs: (logs) => logs.flatMap((log) => [log, log]) })],
      ['is in no order', () => ({ logs: (logs) => logs.toReversed() })],
      [
        'does not say of which height a block is',
        () => ({ logs: (logs) => logs.map((log) => ({ ...log, blockNumber: '' })) }),
      ],
    ],
    2,
  ),
)('where the JSON-RPC of every node %s, no payment is lost', async (_, liesAbout) => {
  await expectPaid(liesAbout, liesAbout);
});

test.each<[string, LiesAbout]>(
  someCases(
    [
      [
        'lacks the payment by a contract',
        ([, paid]) => ({ logs: (logs) => logs.filter((log) => !pays(log, paid as Payable)) }),
      ],
      ['lacks all that contracts moved', () => ({ logs: (logs) => logs.filter((log) => isTo(log, STRANGER)) })],
    ],
    2,
  ),
)('where the JSON-RPC of one operator %s, the other shows it', async (_, liesAbout) => {
  await expectPaid(liesAbout);
});

longTest('what one operator does not show of a block counts only where another shows that block', async () => {
  await expectPaid(
    ([, paid]) => ({ logs: (logs) => logs.filter((log) => !pays(log, paid as Payable)) }),
    () => ({ logs: (logs) => logs.filter((log) => numberOf(log) % 2 === 0) }),
  );
  await world?.stop();
  await expectPaid(
    ([, paid]) => ({ logs: (logs) => logs.filter((log) => !pays(log, paid as Payable)) }),
    () => ({ logs: (logs) => logs.filter((log) => numberOf(log) % 2 === 1) }),
  );
});

test('a node that shows no logs is asked for them again after a minute, and not sooner', async () => {
  const missed = await missMuch({ operators: 1, special: bothWays });
  const [node] = missed.nodes as [AttackNode];
  node.lies = answered('refuse');
  await catchUp(missed);
  // The requests in progress when the first one was answered.
  expect(asked(node, RPC)).toBeLessThanOrEqual(3);
  expect(await missed.world.statuses()).toEqual(['PAID', 'PAID']);
});

test('money that a node says came to us, which the chain does not know, is credited to nobody', async () => {
  let payables: Payable[] = [];
  const missed = await missMuch({
    operators: 1,
    special: (invoices) => {
      payables = invoices;
      return [];
    },
  });
  const [node] = missed.nodes as [AttackNode];
  const [paid] = payables as [Payable];
  const word = (hex: string) => `0x${hex.padStart(64, '0')}`;
  node.lies = {
    logs: (logs) =>
      logs.map((log) => {
        const [topic = '', from = ''] = log.topics;
        return { ...log, topics: [topic, from, word(paid.account)], data: word(paid.amount.toString(16)) };
      }),
  };
  await catchUp(missed);
  expect(await missed.world.statuses()).toEqual(['PENDING', 'PENDING']);
});
