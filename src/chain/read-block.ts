import type { ChainBlock } from '../domain/chain-block.ts';
import { AppError } from '../domain/errors.ts';
import type { AccountHex } from '../tron/address.ts';
import type { NodeClient } from './node-client.ts';
import { type BlockHeader, readHeader, verifyBlock } from './verify-block.ts';

/** The two views of a node: `/wallet` shows the head, which may be forked away; `/walletsolidity` only what is irreversible. */
export type View = 'wallet' | 'walletsolidity';

/** The newest block of a view. One request. */
export async function readNewest(node: NodeClient, view: View): Promise<BlockHeader> {
  return readHeader(await node.post(`/${view}/getblock`, { detail: false }));
}

/** The header at a height. One request. Throws `NODE_REFUSED` if the node does not have the block (`{}`). */
export async function readHeaderAt(node: NodeClient, view: View, number: number): Promise<BlockHeader> {
  const header = readHeader(await node.post(`/${view}/getblock`, { id_or_num: String(number), detail: false }));
  if (header.number !== number) {
    throw new AppError('NODE_REFUSED', `${node.url} sent block ${header.number} for ${number}`, { retryable: true });
  }
  return header;
}

/** The block at a height with its successful USDT transfers, checked. Two requests to the same node. */
export async function readBlock(node: NodeClient, view: View, number: number, usdt: AccountHex): Promise<ChainBlock> {
  const [block, infos] = await Promise.all([
    node.post(`/${view}/getblock`, { id_or_num: String(number), detail: true }),
    node.post(`/${view}/gettransactioninfobyblocknum`, { num: number }),
  ]);
  return verifyBlock(number, block, infos, usdt);
}
