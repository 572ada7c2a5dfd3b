import { accountFromHex41, accountToAddress } from '@quittance/tron/address';
import { type BlockHeaderJson, blockIdOf, encodeBlockHeader, recoverWitness } from '@quittance/tron/block-header';
import { txTrieRoot } from '@quittance/tron/merkle';
import { encodeTransaction, type TransactionJson, transactionFromJson } from '@quittance/tron/transaction';
import { askNode } from '../support/devnet.ts';

interface BlockAnswer {
  readonly blockID: string;
  readonly block_header: {
    readonly raw_data: BlockHeaderJson & { readonly number: number; readonly parentHash: string };
    readonly witness_signature: string;
  };
  readonly transactions?: readonly (TransactionJson & { readonly txID: string })[];
}

interface InfoAnswer {
  readonly id: string;
  readonly contract_address?: string;
  readonly result?: string;
  readonly receipt: { readonly result?: string };
  readonly log?: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
}

/** Reads a block and its infos and verifies them independently of the devnet's code. */
export async function readBlock(url: string, number: number) {
  const block = await askNode<BlockAnswer>(url, '/wallet/getblock', { id_or_num: String(number), detail: true });
  const infos = await askNode<InfoAnswer[]>(url, '/wallet/gettransactioninfobyblocknum', { num: number });
  const { transactions = [] } = block;
  const bytes = encodeBlockHeader(block.block_header.raw_data);
  if (bytes === null) throw new Error(`block ${number} has a header that cannot be encoded`);
  const leaves = transactions.map((each) => {
    const transaction = transactionFromJson(each);
    if (transaction === null) throw new Error(`block ${number} holds a transaction that cannot be read`);
    return encodeTransaction(transaction);
  });
  const signer = recoverWitness(bytes, block.block_header.witness_signature);
  const producer = accountFromHex41(block.block_header.raw_data.witness_address ?? '');
  return {
    block,
    infos,
    txIds: transactions.map(({ txID }) => txID),
    results: transactions.map(({ ret }) => ret?.[0]?.contractRet),
    isIdRight: blockIdOf(bytes, number) === block.blockID,
    isRootRight: txTrieRoot(leaves) === block.block_header.raw_data.txTrieRoot,
    producer: producer === null ? null : accountToAddress(producer),
    signer: signer === null ? null : accountToAddress(signer),
  };
}

/** Returns the address of the key that signs a producer's blocks, according to a node. */
export async function witnessKeyOf(url: string, address: string | null): Promise<string | undefined> {
  const { witness_permission } = await askNode<{ witness_permission?: { keys: { address: string }[] } }>(
    url,
    '/wallet/getaccount',
    { address, visible: true },
  );
  return witness_permission?.keys[0]?.address;
}

/** Returns the amounts of all logs, in order. */
export function amountsOf(infos: readonly InfoAnswer[]): bigint[] {
  return infos.flatMap(({ log = [] }) => log.map(({ data }) => BigInt(`0x${data}`)));
}
