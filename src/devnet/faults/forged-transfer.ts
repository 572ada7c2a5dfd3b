import { bytesToHex } from '@noble/hashes/utils.js';
import { encodeRawTransaction } from '../../tron/raw-transaction.ts';
import { signMessage } from '../../tron/signature.ts';
import { txIdOf } from '../../tron/transaction.ts';
import { encodeTransferCall, TRANSFER_TOPIC } from '../../tron/usdt.ts';
import type { Block, BlockTransaction } from '../chain/block.ts';
import { accountWord, uintWord } from '../evm/abi.ts';
import { attackerSigner, PAYER, USDT } from '../evm/keys.ts';
import type { SettledFault } from './faults.ts';

const LIFETIME_MS = 60_000;
const ENERGY = 64_285;

/** A direct USDT transfer that never was: from the payer, whose key the attacker lacks, so it is signed with another one. */
export function forgedTransfer(
  { header }: Block,
  { recipient, amountMicro = 1_000_000n }: SettledFault,
): BlockTransaction {
  const rawData = encodeRawTransaction({
    refBlockBytes: header.parentHash.slice(12, 16),
    refBlockHash: header.parentHash.slice(16, 32),
    expirationMs: header.timestamp + LIFETIME_MS,
    timestampMs: header.timestamp,
    feeLimitSun: 100_000_000n,
    memo: '',
    permissionId: 0,
    contract: {
      kind: 'trigger',
      owner: PAYER.account,
      contract: USDT,
      data: encodeTransferCall(recipient, amountMicro),
      callValueSun: 0n,
    },
  });
  const topics = [TRANSFER_TOPIC, accountWord(PAYER.account), accountWord(recipient)];
  return {
    id: txIdOf(rawData),
    rawDataHex: bytesToHex(rawData),
    signatures: [signMessage(rawData, attackerSigner(0).privateKey)],
    contractRet: 'SUCCESS',
    info: {
      fee: ENERGY * 100,
      contractResult: [uintWord(0)],
      contract_address: `41${USDT}`,
      receipt: { energy_fee: ENERGY * 100, energy_usage_total: ENERGY, net_usage: 345, result: 'SUCCESS' },
      log: [{ address: USDT, topics, data: uintWord(amountMicro) }],
    },
  };
}
