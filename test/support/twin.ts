import { type Devnet, startDevnet } from '@quittance/devnet';
import { parseAddress } from '@quittance/tron/address';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import type { ServiceOptions } from '../../src/server/context.ts';
import { askNode } from './devnet.ts';

/** Starts another instance of the same network, equal block by block up to its head and with the same producers. It has no transactions. */
export async function startTwin(devnet: Devnet): Promise<Devnet> {
  const timeOf = async (number: number) => {
    const block = await askNode<{ block_header: { raw_data: { timestamp: number } } }>(devnet.url, '/wallet/getblock', {
      id_or_num: String(number),
    });
    return block.block_header.raw_data.timestamp;
  };
  const twin = await startDevnet({
    dataDir: null,
    blockMs: 0,
    producers: devnet.witnesses().length,
    genesisTimestampMs: devnet.genesisTimestampMs,
  });
  while (twin.head().number < devnet.head().number) {
    twin.mine(1, { timestampMs: await timeOf(twin.head().number + 1) });
  }
  if (twin.head().id === devnet.head().id) return twin;
  await twin.stop();
  throw new Error('the two runs of the network differ');
}

/** Part of a service's configuration. It's read at each start, so that a restarted service can get other nodes. */
export type Networks = { networks?: ServiceOptions['config']['networks'] };

/** Returns the setting for these nodes of a devnet, each with a different operator. */
export function networksOf(
  { usdtContract }: Devnet,
  urls: readonly string[],
  agreement: number,
): NonNullable<Networks['networks']> {
  const usdt = parseAddress(usdtContract);
  if (usdt.kind !== 'ok') throw new Error(usdt.reason);
  return { devnet: { nodes: urls.map((url) => unlimitedNode(url)), usdt: usdt.account, agreement } };
}
