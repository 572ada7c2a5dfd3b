import { startDevnet } from '@quittance/devnet';
import { createPayer } from '@quittance/devnet/payer';
import { type AccountHex, accountToAddress, parseAddress } from '@quittance/tron/address';
import type { ShownBlock, ShownHeader } from '@quittance/tron/shown-block';
import { encodeTransferCall, encodeTransferFromCall, TRANSFER_TOPIC } from '@quittance/tron/usdt';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  buildBlock,
  directTransfer,
  flipBit,
  type InfoAnswer,
  type LogAnswer,
  leavesOf,
  type Move,
  OTHER_CONTRACT,
  type Planned,
  rawCall,
  rawTransfer,
  SLOT_MS,
  transferLog,
  USDT,
} from '../../../../test/support/build-block.ts';
import { CONTRACT_EVENT_TOPICS } from '../../domain/contract-event.ts';
import { blockAt, headerAt, infosOf, type ShownInfo } from '../nodes/questions.ts';
import { type ExaminedBlock, examineBlock, readBlockId } from '../proof/prove-block.ts';
import type { FeeTerms } from './fee-terms.ts';
import { readLogs } from './read-logs.ts';

// biome-ignore lint/suspicious/noExplicitAny: the answers are bent in every way.
type Bent = any;

const [ALICE, BOB, OWNER] = ['a1'.repeat(20), 'b2'.repeat(20), 'c3'.repeat(20)] as [AccountHex, AccountHex, AccountHex];
const refused = expect.objectContaining({ code: 'NODE_REFUSED', retryable: true });
const unverifiable = expect.objectContaining({ code: 'BLOCK_UNVERIFIABLE', retryable: true });
const OPTIONS = { number: 156, slotMs: SLOT_MS, usdt: USDT };
const move: Move = { from: ALICE, to: BOB, value: 25_000_009n };
const { value: amount, ...parties } = move;
const wholeMove = { ...parties, amount };
/** Of the transfer above a fee of 9 is due. */
const TERMS: FeeTerms = { owner: OWNER, basisPoints: 10n, maxFee: 9n };
const word = (hex: string) => hex.padStart(64, '0');

/** What a node's JSON of a block proves. */
const prove = (json: unknown, expected: Parameters<typeof examineBlock>[1] = OPTIONS) => {
  const examined = examineBlock(blockAt(expected.number).http.read(json) as ShownBlock, expected);
  expect(examined.isProven).toBe(true);
  return examined;
};

/** A call of another contract, which moves USDT inside. */
const batch = (logs: LogAnswer[], nonce = 0): Planned => ({
  rawData: rawCall({ owner: ALICE, contract: OTHER_CONTRACT, data: 'ab' }, nonce),
  logs,
});
/** The info that a node shows for transactions, read against the block that is proven. */
function read(planned: readonly Planned[], change: (infos: Bent) => unknown = () => undefined) {
  const { block, infos } = buildBlock(planned);
  const proven = prove(block);
  const copy = structuredClone(infos);
  change(copy);
  return readLogs(proven, copy, USDT);
}
/** The transfer above as one part that arrives and one that does not. */
function readSplit(fee: bigint, terms: FeeTerms[], order: (logs: LogAnswer[]) => LogAnswer[]) {
  const parts = [transferLog({ ...move, value: move.value - fee }), transferLog({ ...move, to: OWNER, value: fee })];
  const { block, infos } = buildBlock([{ ...directTransfer(move), logs: order(parts) }]);
  return readLogs(prove(block), infos, USDT, terms);
}
const topicOf = (kind: string) => [...CONTRACT_EVENT_TOPICS].find(([, name]) => name === kind)?.[0] ?? '';

const PLAN: readonly Planned[] = [
  directTransfer(move),
  batch([
    transferLog({ ...move, value: 3n }),
    transferLog(move, OTHER_CONTRACT),
    transferLog({ ...move, value: 0n }),
    transferLog({ ...move, to: OWNER }),
  ]),
  { ...directTransfer(move, 2), contractRet: 'REVERT', logs: [] },
  { rawData: rawTransfer({ owner: ALICE, to: BOB }), isContract: false },
];

test('a direct transfer is proven, one inside a contract is not; only those of USDT above 0 count', () => {
  const { transfers, events } = read(PLAN);
  expect(transfers.map(({ logIndex, to, amount, isProven }) => [logIndex, to, amount, isProven])).toEqual([
    [0, BOB, 25_000_009n, true],
    [0, BOB, 3n, false],
    [3, OWNER, 25_000_009n, false],
  ]);
  expect(events).toEqual([]);
});

test('the real info of a private network is read', () => {
  const real = {
    id: '0ca17a0da65cb2df52be4e5edd8654358f7ad2b6f083180e719784ff8ff1c8ae',
    fee: 2965000,
    blockNumber: 156,
    blockTimeStamp: 1790865477000,
    contractResult: ['0'.repeat(64)],
    contract_address: '41d53adb8bb7b45de60d0dc3d03ba0c187093b919d',
    receipt: { energy_fee: 2965000, energy_usage_total: 29650, net_usage: 345, result: 'SUCCESS' },
    log: [
      {
        address: 'd53adb8bb7b45de60d0dc3d03ba0c187093b919d',
        topics: [
          'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
          '0000000000000000000000007e5f4552091a69125d5dfcb7b8c2659029395bdf',
          '000000000000000000000000dcf2957055e8fcde477a077ecfeddf5ab2357547',
        ],
        data: '00000000000000000000000000000000000000000000000000000000000f4240',
      },
    ],
  };
  const from = '7e5f4552091a69125d5dfcb7b8c2659029395bdf' as AccountHex;
  const to = 'dcf2957055e8fcde477a077ecfeddf5ab2357547' as AccountHex;
  const { block } = buildBlock([directTransfer({ from, to, value: 1_000_000n })]);
  // The raw_data of the real transaction is not at hand: its id stands over a call that says the same.
  const proven = prove(block);
  const realBlock: ExaminedBlock = {
    ...proven,
    transactions: proven.transactions.map((each) => ({ ...each, txId: real.id })),
  };
  const { transfers, digest } = readLogs(realBlock, [real], USDT);
  expect(transfers).toEqual([{ txId: real.id, logIndex: 0, from, to, amount: 1_000_000n, isProven: true }]);
  // Every one-bit change of what is read is refused; the upper 12 bytes of an address and the rest of the info say nothing.
  const paths = leavesOf(real).filter(({ path: [name] }) =>
    ['id', 'blockNumber', 'blockTimeStamp', 'log'].includes(name ?? ''),
  );
  let refusals = 0;
  for (const { path } of paths) {
    for (let bit = 0; bit < 160; bit += 3) {
      const isPadding = path[2] === 'topics' && path[3] !== '0' && bit < 96;
      const attempt = () => readLogs(realBlock, [flipBit(real, path, bit)], USDT);
      if (isPadding)
        expect(attempt()).toEqual({
          transfers,
          events: [],
          digest,
          hasOddSplit: false,
          isForwarded: false,
          successor: null,
        });
      else expect(attempt).toThrow();
      refusals += isPadding ? 0 : 1;
    }
  }
  expect(refusals).toBeGreaterThan(100);
  expect(() => readLogs(realBlock, [{ ...real, receipt: { result: 'REVERT' } }], USDT)).toThrow(unverifiable);
});

test('a transfer to oneself, and one for another, are proven', () => {
  const self = { ...move, to: ALICE };
  const spender = { rawData: rawCall({ owner: OWNER, data: encodeTransferFromCall(ALICE, BOB, 7n) }) };
  const logs = read([directTransfer(self), { ...spender, logs: [transferLog({ ...move, value: 7n })] }]);
  expect(logs.transfers).toMatchObject([
    { from: ALICE, to: ALICE, isProven: true },
    { from: ALICE, to: BOB, amount: 7n, isProven: true },
  ]);
});

test.each([
  ['after the payment', (logs: LogAnswer[]) => logs],
  ['before the payment', (logs: LogAnswer[]) => logs.reverse()],
])('with Tether’s fee %s, what arrived counts and is not proven', (_when, order) => {
  const { transfers, hasOddSplit } = readSplit(9n, [TERMS], order);
  expect(transfers.map(({ amount, isProven }) => [amount, isProven]).sort()).toEqual([
    [25_000_000n, false],
    [9n, false],
  ]);
  expect(hasOddSplit).toBe(false);
});

test.each<[string, bigint, FeeTerms[]]>([
  ['no terms are known', 9n, []],
  ['no fee is due', 9n, [{ ...TERMS, basisPoints: 0n }]],
  ['the fee is less than is due', 8n, [TERMS]],
  ['the fee is more than is due', 10n, [TERMS]],
  ['the fee is capped', 10n, [{ ...TERMS, basisPoints: 19n }]],
  ['the fee goes to somebody else', 9n, [{ ...TERMS, owner: ALICE }]],
])(
  'a direct transfer that is shown as split counts whole and proven, as its first log, where %s',
  (_what, fee, terms) => {
    for (const order of [(logs: LogAnswer[]) => logs, (logs: LogAnswer[]) => logs.reverse()]) {
      const { transfers, hasOddSplit } = readSplit(fee, terms, order);
      expect(transfers).toMatchObject([{ ...wholeMove, logIndex: 0, isProven: true }]);
      expect(hasOddSplit).toBe(true);
    }
  },
);

test('any of the known terms explains a split, and nodes that show one differ from those that show the whole', () => {
  const asShown = (logs: LogAnswer[]) => logs;
  const later = { ...TERMS, maxFee: 10n };
  const split = readSplit(9n, [later, TERMS], asShown);
  expect(split.hasOddSplit).toBe(false);
  expect(split.digest).not.toBe(read([directTransfer(move)]).digest);
  expect(readSplit(9n, [later], asShown).digest).toBe(read([directTransfer(move)]).digest);
});

test.each<[string, LogAnswer[]]>([
  ['none', []],
  ['one of another token only', [transferLog(move, OTHER_CONTRACT)]],
  ['another value', [transferLog({ ...move, value: 25_000_010n })]],
  ['less', [transferLog({ ...move, value: 25_000_000n })]],
  ['another payer', [transferLog({ ...move, from: OWNER })]],
  ['another receiver', [transferLog({ ...move, to: OWNER })]],
  ['a value of 0', [transferLog({ ...move, value: 0n })]],
  ['it twice', [transferLog(move), transferLog(move)]],
  ['it and one of 0', [transferLog(move), transferLog({ ...move, to: OWNER, value: 0n })]],
  ['it and one from another payer', [transferLog(move), transferLog({ from: OWNER, to: BOB, value: 1n })]],
  ['a fee that makes it more', [transferLog(move), transferLog({ ...move, to: OWNER, value: 9n })]],
  [
    'a fee from another payer',
    [transferLog({ ...move, value: 25_000_000n }), transferLog({ from: BOB, to: OWNER, value: 9n })],
  ],
  [
    'two parts for others',
    [transferLog({ ...move, to: OWNER, value: 25_000_000n }), transferLog({ ...move, to: OWNER, value: 9n })],
  ],
  [
    'three parts',
    [
      transferLog({ ...move, value: 25_000_000n }),
      transferLog({ ...move, to: OWNER, value: 8n }),
      transferLog({ ...move, to: OWNER, value: 1n }),
    ],
  ],
  ['it and a Pause', [transferLog(move), { address: USDT, topics: [topicOf('Pause')], data: '' }]],
])('a direct transfer whose logs are %s is refused', (_what, logs) => {
  expect(() => read([{ ...directTransfer(move), logs }])).toThrow(unverifiable);
});

test.each<[string, (infos: Bent) => unknown]>([
  ['a call that succeeded is shown as failed', (i) => (i[0].result = 'FAILED')],
  ['the receipt of a call that succeeded says REVERT', (i) => (i[1].receipt.result = 'REVERT')],
  ['the receipt of a call that succeeded says nothing', (i) => delete i[1].receipt],
  [
    'a call that failed is shown as successful',
    (i) => Object.assign(i[2], { receipt: { result: 'SUCCESS' }, log: [transferLog(move)] }),
  ],
  ['a TRX transfer has logs', (i) => (i[3].log = [transferLog(move)])],
  ['a log is a number', (i) => (i[1].log[1] = 7)],
  ['a log has no address', (i) => delete i[1].log[1].address],
  ['a log has an address of 19 bytes', (i) => (i[1].log[1].address = '00'.repeat(19))],
  ['a Transfer of USDT has two topics', (i) => i[1].log[0].topics.pop()],
  ['a Transfer of USDT has four topics', (i) => i[1].log[0].topics.push(word('1'))],
  ['a Transfer of USDT has no data', (i) => delete i[1].log[0].data],
  ['a Transfer of USDT has 31 bytes of data', (i) => (i[1].log[0].data = '00'.repeat(31))],
  ['a Transfer of USDT has data that is no hex', (i) => (i[1].log[0].data = 'zz'.repeat(32))],
  ['a log of USDT has topics that are no list', (i) => (i[1].log[0].topics = TRANSFER_TOPIC)],
  ['a log of USDT has a topic that is no text', (i) => (i[1].log[0].topics[0] = 7)],
  ['a log of USDT has five topics', (i) => (i[1].log[0].topics = Array(5).fill(word('1')))],
])('it is unverifiable when %s', (_what, change) => {
  expect(() => read(PLAN, change)).toThrow(unverifiable);
});

test.each<[string, (infos: Bent) => unknown]>([
  ['no infos for a block with transactions', (i) => i.splice(0)],
  ['one info too few', (i) => i.pop()],
  ['one info too many', (i) => i.push(i[0])],
  ['infos in another order', (i) => i.reverse()],
  ['an info of another block', (i) => (i[0].blockNumber += 1)],
  ['an info without its block number', (i) => delete i[0].blockNumber],
  ['an info of another time', (i) => (i[0].blockTimeStamp += SLOT_MS)],
  ['logs that are no list', (i) => (i[0].log = 'x')],
])('%s are not the infos of the block', (_what, change) => {
  expect(() => read(PLAN, change)).toThrow(refused);
});

test('the message does not repeat the number of the block, which the reader of the block adds', () => {
  const mismatch = "the node's transaction infos do not match the block";
  expect(() => read(PLAN, (i) => i.splice(0))).toThrow(`${mismatch}: 0 infos for ${PLAN.length} transactions`);
  for (const change of [(i: Bent) => i.splice(0), (i: Bent) => i.reverse()])
    expect(() => read(PLAN, change)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('block 1') }),
    );
});

test('what is no list at all is refused', () => {
  for (const answer of [{}, null, 'x', undefined]) {
    expect(() => infosOf(156, USDT).http.read(answer)).toThrow(TypeError);
  }
  expect(readLogs(prove(buildBlock([]).block), [], USDT)).toMatchObject({ transfers: [], events: [] });
});

test('the logs of a call that failed count for nothing', () => {
  const without = read(PLAN);
  expect(read(PLAN, (infos) => (infos[2].log = [transferLog(move)]))).toEqual(without);
});

test('a transfer forged inside a contract changes the digest, and so does one left out', () => {
  const digests = [
    read(PLAN),
    read(PLAN, (infos) => infos[1].log.push(transferLog({ ...move, value: 99n }))),
    read(PLAN, (infos) => infos[1].log.shift()),
    read(PLAN, (infos) => infos[1].log.splice(2, 1)),
    read(PLAN, (infos) => (infos[1].log[0].data = word('4'))),
    read(PLAN, (infos) => (infos[1].log[0].topics[2] = word(OWNER))),
    read(PLAN, (infos) => infos[1].log.unshift({ address: OTHER_CONTRACT, topics: [], data: '' })),
  ].map(({ digest }) => digest);
  expect(new Set(digests).size).toBe(digests.length);
});

test('logs of other contracts need not be kept, only counted', () => {
  expect(read(PLAN, (infos) => (infos[1].log[1] = null))).toEqual(read(PLAN));
});

test('letter case, the prefix 41 and logs of other contracts do not change the digest', () => {
  const { digest } = read(PLAN);
  const prefixed = (topic: string) => `${'0'.repeat(22)}41${topic.slice(24)}`;
  const shown = read(PLAN, (infos) => {
    const [log, other] = infos[1].log;
    log.address = `41${log.address.toUpperCase()}`;
    log.topics = [log.topics[0].toUpperCase(), prefixed(log.topics[1]), prefixed(log.topics[2])];
    other.data = word('7');
  });
  expect(shown).toEqual({ ...read(PLAN), digest });
});

test('the prefix 41 in an Approval does not change the digest either, another address does', () => {
  const approval = (spender: string): LogAnswer => ({
    address: USDT,
    topics: ['8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925', word(ALICE), word(spender)],
    data: word('1'),
  });
  const [plain, prefixed, other] = [BOB, `41${BOB}`, OWNER].map((each) => read([batch([approval(each)])]).digest);
  expect(prefixed).toBe(plain);
  expect(other).not.toBe(plain);
});

test.each<[string, LogAnswer[], string, AccountHex | null]>([
  ['Pause', [{ address: USDT, topics: [topicOf('Pause')], data: '' }], '', null],
  ['Unpause', [{ address: USDT, topics: [topicOf('Unpause')], data: '' }], '', null],
  [
    'Params',
    [{ address: USDT, topics: [topicOf('Params')], data: word('a') + word('32') }],
    'fee 10 basis points, at most 50',
    null,
  ],
  ['Deprecate', [{ address: USDT, topics: [topicOf('Deprecate')], data: word(BOB) }], accountToAddress(BOB), BOB],
  [
    'AddedBlackList',
    [{ address: USDT, topics: [topicOf('AddedBlackList')], data: word(BOB) }],
    accountToAddress(BOB),
    BOB,
  ],
  [
    'AddedBlackList',
    [{ address: USDT, topics: [topicOf('AddedBlackList'), word(`41${BOB}`)], data: '' }],
    accountToAddress(BOB),
    BOB,
  ],
  [
    'RemovedBlackList',
    [{ address: USDT, topics: [topicOf('RemovedBlackList'), word(BOB)], data: '' }],
    accountToAddress(BOB),
    BOB,
  ],
  [
    'DestroyedBlackFunds',
    [{ address: USDT, topics: [topicOf('DestroyedBlackFunds'), word(BOB)], data: word('a') }],
    `${accountToAddress(BOB)} 10`,
    BOB,
  ],
  ['Issue', [{ address: USDT, topics: [topicOf('Issue')], data: word('a') }], '10', null],
  ['Redeem', [{ address: USDT, topics: [topicOf('Redeem')], data: word('a') }], '10', null],
])('%s of USDT is read, its arguments indexed or not', (name, logs, detail, account) => {
  const { events } = read([{ rawData: rawCall({ owner: OWNER, data: '8456cb59' }), logs }]);
  expect(events).toMatchObject([{ name, detail, account, logIndex: 0 }]);
  const elsewhere = logs.map((log) => ({ ...log, address: OTHER_CONTRACT }));
  expect(read([batch(elsewhere)]).events).toEqual([]);
});

test.each([
  ['10', 10n],
  ['nothing', 0n],
])('funds that Tether destroys leave the account for nobody: %s', (_what, value) => {
  const log = { address: USDT, topics: [topicOf('DestroyedBlackFunds'), word(BOB)], data: word(value.toString(16)) };
  const { transfers } = read([batch([log])]);
  const burned = { logIndex: 0, from: BOB, to: '0'.repeat(40), amount: value, isProven: false };
  expect(transfers).toMatchObject(value === 0n ? [] : [burned]);
});

test('an event with other arguments than its name says is refused', () => {
  for (const [kind, data] of [
    ['Pause', word('1')],
    ['Params', word('1')],
    ['Deprecate', ''],
    ['Deprecate', '01'],
    ['DestroyedBlackFunds', word(BOB)],
    ['Issue', ''],
  ] as const) {
    expect(() => read([batch([{ address: USDT, topics: [topicOf(kind)], data }])])).toThrow(unverifiable);
  }
});

test('a call that is no plain transfer may log other events of USDT', () => {
  const approval = {
    address: USDT,
    topics: ['8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925'],
    data: '',
  };
  const { transfers } = read([{ ...directTransfer(move), logs: [approval, transferLog(move)] }]);
  expect(transfers).toMatchObject([{ logIndex: 0, isProven: true }]);
});

test('a contract whose bytes cannot be read as ours has its logs, and none of them is proven', () => {
  const odd = rawCall({ owner: ALICE, data: encodeTransferCall(BOB, move.value) });
  const rawData = Uint8Array.from([...odd, 0xa0, 0x01, 0x01]);
  expect(read([{ rawData, logs: [transferLog(move)] }]).transfers).toMatchObject([
    { amount: move.value, isProven: false },
  ]);
});

test('one changed bit of the infos is refused, or changes no proven transfer and is told by the digest', () => {
  const account = fc.constantFrom(ALICE, BOB, OWNER);
  const moves = fc.record({ from: account, to: account, value: fc.bigInt(1n, 2n ** 90n) });
  const plan = fc
    .array(
      fc.oneof(
        moves.map((each) => [each]),
        fc.array(moves, { minLength: 2, maxLength: 3 }),
      ),
      { minLength: 1, maxLength: 5 },
    )
    .map((groups) =>
      groups.map((group, index) =>
        group.length === 1 && group[0] !== undefined
          ? directTransfer(group[0], index)
          : batch(
              group.map((each) => transferLog(each)),
              index,
            ),
      ),
    );
  fc.assert(
    fc.property(plan, fc.nat(), fc.nat(), (planned, which, bit) => {
      const { block, infos } = buildBlock(planned);
      const proven = prove(block);
      const expected = readLogs(proven, infos, USDT);
      const paths = leavesOf(infos);
      const changed: InfoAnswer[] = flipBit(infos, paths[which % paths.length]?.path ?? [], bit);
      try {
        const logs = readLogs(proven, changed, USDT);
        const provenOf = ({ transfers }: typeof logs) => transfers.filter(({ isProven }) => isProven);
        expect(provenOf(logs)).toEqual(provenOf(expected));
        if (logs.digest === expected.digest) expect(logs).toEqual(expected);
      } catch (error) {
        expect([refused, unverifiable]).toContainEqual(error);
      }
    }),
    { numRuns: 300 },
  );
});

test('the blocks of a devnet are proven and read, whatever is in them', async () => {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0 });
  try {
    const { usdtContract: contract, multisendContract: to } = devnet;
    const usdt = parseAddress(contract);
    if (usdt.kind !== 'ok') throw new Error(usdt.reason);
    const payer = createPayer({ nodeUrl: devnet.url, privateKey: devnet.payer.privateKey });
    await payer.transfer({ contract, to, amountMicro: 25_000_009n });
    await payer.transfer({ contract: devnet.fakeUsdtContract, to, amountMicro: 25_000_009n });
    await payer.transfer({ contract, to, amountMicro: 10n ** 30n });
    await payer.sendTrx({ to, amountSun: 5n });
    const number = devnet.mine()[0]?.number ?? 0;
    const post = async (path: string, body: object): Promise<unknown> =>
      (await fetch(`${devnet.url}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
    const answer = await post('/wallet/getblock', { id_or_num: String(number), detail: true });
    const infos = await post('/wallet/gettransactioninfobyblocknum', { num: number });
    const proven = prove(answer, { number, slotMs: null, usdt: usdt.account });
    expect(proven.transactions.map(({ isSuccess, isContract }) => [isSuccess, isContract])).toEqual([
      [true, true],
      [true, true],
      [false, true],
      [true, false],
    ]);
    const { transfers } = readLogs(proven, infos as ShownInfo[], usdt.account);
    expect(transfers).toMatchObject([{ logIndex: 0, amount: 25_000_009n, isProven: true }]);
    const genesis = await post('/wallet/getblock', { id_or_num: '0', detail: false });
    expect(readBlockId(headerAt('any', 0).http.read(genesis) as ShownHeader).number).toBe(0);
  } finally {
    await devnet.stop();
  }
});

describe('a direct call that moves nothing', () => {
  const zero = { ...move, value: 0n };
  const readWith = (logs: Planned['logs']) => {
    const { block, infos } = buildBlock([{ ...directTransfer(zero), logs: logs ?? [] }]);
    return readLogs(prove(block), infos, USDT);
  };

  test('is no transfer, whether it logs that or nothing', () => {
    expect(readWith([transferLog(zero)]).transfers).toEqual([]);
    expect(readWith([]).transfers).toEqual([]);
  });

  test('cannot be made a payment by its logs', () => {
    expect(() => readWith([transferLog({ ...zero, value: 1n })])).toThrow(/moves 0 from/);
    expect(() => readWith([transferLog(zero), transferLog(move)])).toThrow(/moves 0 from/);
  });
});
