import { concatBytes } from '@noble/hashes/utils.js';
import type { AccountHex } from '@quittance/tron/address';
import type { ShownBlock } from '@quittance/tron/shown-block';
import { USDT_CONTRACTS } from '@quittance/tron/usdt';
import { describe, expect, test } from 'vitest';
import { mainNetworkBlock, type Oddity, REAL_USDT, realBlock } from '../../../../test/support/real-blocks.ts';
import { createJsonReader } from '../nodes/json-reader.ts';
import type { Question } from '../nodes/node.ts';
import { blockAt, infosOf } from '../nodes/questions.ts';
import { readLogs } from '../verify/read-logs.ts';
import { examineBlock } from './prove-block.ts';

const PLENTY = 64 * 1024 * 1024;
const OTHER = '99'.repeat(20) as AccountHex;

function fromJson<Answer>({ http }: Question<Answer>, text: string): Answer {
  const reader = createJsonReader(http.shape ?? {}, PLENTY);
  reader.push(Buffer.from(text));
  return http.read(reader.end());
}

function fromMessage<Answer>({ grpc }: Question<Answer>, message: Uint8Array, size = message.length): Answer {
  if (grpc === null) throw new Error('gRPC has no such call');
  const sink = grpc.newSink();
  for (let at = 0; at < message.length; at += size) sink.push(message.subarray(at, at + size));
  return sink.end();
}

/** A real block as each language of a node shows it. */
function examined(oddity: Oddity, language: 'json' | 'grpc') {
  const { number, json, bytes } = realBlock(oddity);
  const question = blockAt(number);
  const shown = language === 'json' ? fromJson(question, json) : fromMessage(question, bytes, 100);
  return examineBlock(shown as ShownBlock, { number, slotMs: 3000, usdt: REAL_USDT });
}

const ALL: Oddity[] = [
  ...(['outer-field', 'result-1002', 'order-id', 'result-2^53', 'header-raw'] as const),
  ...(['long-signature', 'payout', 'fee-direct', 'out-of-energy'] as const),
];

describe('a real block', () => {
  test.each(ALL)('%s is proven by its bytes, and signed by its producer', (oddity) => {
    const block = examined(oddity, 'grpc');
    expect(block.isProven).toBe(true);
    expect(block.signer).toBe(block.producer);
  });

  test.each<[Oddity, boolean]>([
    ['outer-field', false],
    ['result-1002', false],
    ['order-id', false],
    ['result-2^53', false],
    ['header-raw', false],
    ['long-signature', true],
    ['payout', true],
    ['fee-direct', true],
    ['out-of-energy', true],
  ])('%s is proven by its JSON: %s', (oddity, isProven) => {
    const [inJson, inBytes] = [examined(oddity, 'json'), examined(oddity, 'grpc')];
    const transactions = inBytes.transactions.map((each) => (isProven ? each : { ...each, call: null }));
    const signer = oddity === 'header-raw' ? null : inBytes.signer;
    expect(inJson).toEqual({ ...inBytes, isProven, transactions, signer });
  });

  test.each(ALL)('%s has the same logs in both languages, in pieces of any size', (oddity) => {
    const { number, infosJson, infoBytes } = realBlock(oddity);
    const block = examined(oddity, 'grpc');
    const logs = readLogs(block, fromJson(infosOf(number, REAL_USDT), infosJson), REAL_USDT);
    for (const size of [1, 7, infoBytes.length]) {
      const infos = fromMessage(infosOf(number, REAL_USDT), infoBytes, size);
      expect(readLogs(block, infos, REAL_USDT)).toEqual(logs);
    }
    const hasTransfer = oddity !== 'long-signature' && oddity !== 'out-of-energy';
    expect(logs.transfers.length > 0).toBe(hasTransfer);
    // Logs of others than the one that is asked for are counted and not kept.
    const others = fromMessage(infosOf(number, OTHER), infoBytes);
    expect(others.flatMap(({ log }) => (log ?? []) as unknown[]).every((log) => log === null)).toBe(true);
  });

  test('of a direct payment is proven by its bytes, of a payout only the log tells', () => {
    const transfersOf = (oddity: Oddity) => {
      const { number, infoBytes } = realBlock(oddity);
      return readLogs(examined(oddity, 'grpc'), fromMessage(infosOf(number, REAL_USDT), infoBytes), REAL_USDT)
        .transfers;
    };
    expect(transfersOf('outer-field')).toMatchObject([{ isProven: true }]);
    expect(transfersOf('payout')).toMatchObject([{ isProven: false }]);
  });

  test('with Tether’s fee is split where the terms are known', () => {
    const { number, infoBytes } = realBlock('fee-direct');
    const block = examined('fee-direct', 'grpc');
    const infos = fromMessage(infosOf(number, REAL_USDT), infoBytes);
    const value = block.transactions[0]?.call?.value ?? 0n;
    expect(readLogs(block, infos, REAL_USDT)).toMatchObject({
      hasOddSplit: true,
      transfers: [{ amount: value, isProven: true }],
    });
    // As its `Params` said one block before: 10 basis points, at most 5 USDT.
    const owner = '3e7b358492aa5d3d392bf20af513345eb68b4d37' as AccountHex;
    const split = readLogs(block, infos, REAL_USDT, [{ owner, basisPoints: 10n, maxFee: 5_000_000n }]);
    const fee = value / 1000n;
    expect(split.hasOddSplit).toBe(false);
    expect(split.transfers.map(({ amount, isProven }) => [amount, isProven])).toEqual([
      [value - fee, false],
      [fee, false],
    ]);
  });
});

test('block 79072107 of the main network is proven, of whose transactions one holds a field that JSON hides', () => {
  const usdt = USDT_CONTRACTS.mainnet.account;
  const shown = fromMessage(blockAt(79_072_107), mainNetworkBlock(), 16_384) as ShownBlock;
  const block = examineBlock(shown, { number: 79_072_107, slotMs: 3000, usdt });
  expect(block).toMatchObject({ isProven: true, producer: 'beab998551416b02f6721129bb01b51fceceba08' });
  const direct = block.transactions.filter(({ call }) => call !== null);
  expect(direct.length).toBeGreaterThan(50);
  // One of these transactions less, and nothing is.
  expect(() =>
    examineBlock(
      { ...shown, transactions: [...shown.transactions].slice(1) },
      { number: 79_072_107, slotMs: 3000, usdt },
    ),
  ).toThrow('contradicts itself');
});

test('a message that holds a second block beside it is no block of one height', () => {
  const { bytes } = realBlock('payout');
  const two = concatBytes(bytes, realBlock('outer-field').bytes);
  expect(() =>
    examineBlock(fromMessage(blockAt(214), two) as ShownBlock, { number: 214, slotMs: 3000, usdt: REAL_USDT }),
  ).toThrow();
});
