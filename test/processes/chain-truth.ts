import type { Devnet } from '@quittance/devnet';
import { type AccountHex, parseAddress } from '@quittance/tron/address';
import { TRANSFER_TOPIC } from '@quittance/tron/usdt';
import { askNode } from '../support/devnet.ts';

/** The chain's record of our addresses: `<block> <txId> <log> <amount>` of each incoming transfer, and the id of each block. */
export type ChainTruth = {
  /** Reads up to a height, which must be irreversible. */
  readTo(number: number): Promise<void>;
  transfersUpTo(number: number): string[];
  idOf(number: number): string | undefined;
};

type Info = { id: string; log?: { address: string; topics: string[]; data: string }[] };

/** Reads the irreversible blocks from a healthy node, and decodes them without any code under test. */
export function createChainTruth(devnet: Devnet, addresses: readonly string[]): ChainTruth {
  const usdt = accountOf(devnet.usdtContract);
  const ours = new Set(addresses.map(accountOf));
  const blocks = new Map<number, { id: string; transfers: string[] }>();
  const read = async (number: number): Promise<void> => {
    const { blockID } = await askNode<{ blockID: string }>(devnet.url, '/walletsolidity/getblockbynum', {
      num: number,
    });
    const path = '/walletsolidity/gettransactioninfobyblocknum';
    const infos = await askNode<Info[]>(devnet.url, path, { num: number });
    const transfers = infos.flatMap(({ id, log = [] }) =>
      log.flatMap(({ address, topics, data }, index) => {
        const isOurs = topics[0] === TRANSFER_TOPIC && ours.has(String(topics[2]).slice(-40) as AccountHex);
        return isOurs && address === usdt ? [`${number} ${id} ${index} ${BigInt(`0x${data}`)}`] : [];
      }),
    );
    blocks.set(number, { id: blockID, transfers });
  };
  return {
    readTo: async (number) => {
      if (number > devnet.solid().number) throw new Error(`block ${number} is not irreversible on the chain`);
      for (let next = blocks.size + 1; next <= number; next += 1) await read(next);
    },
    transfersUpTo: (number) => [...blocks].flatMap(([height, { transfers }]) => (height <= number ? transfers : [])),
    idOf: (number) => blocks.get(number)?.id,
  };
}

function accountOf(address: string): AccountHex {
  const parsed = parseAddress(address);
  if (parsed.kind !== 'ok') throw new Error(parsed.reason);
  return parsed.account;
}
