import { type AccountHex, accountToAddress, parseAddress } from '@quittance/tron/address';
import { type AppError, invalidArgument } from '../../domain/errors.ts';
import { isNetwork, type Network } from '../../domain/network.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { asObject } from '../../runtime/parse-object.ts';

/**
 * For each real network, a block with the producers at that time. With a checkpoint, a first start doesn't have to trust the nodes about
 * the producers. No checkpoint ships yet. One maintainer creates each checkpoint with an instance that follows the network, and another one
 * checks it (docs/decisions/0045-checkpoints.md).
 */
const SHIPPED: Partial<Record<Network, CheckpointFile>> = {};

/** An irreversible block with the producers at that time and their signing keys. */
export type Checkpoint = {
  network: Network;
  number: number;
  id: string;
  time: UnixMs;
  producers: readonly Member[];
};

export type Member = { account: AccountHex; signer: AccountHex };

/** A checkpoint in the form that is shipped, printed and checked, with addresses in Base58. Block 0 can't be a checkpoint. */
export type CheckpointFile = {
  network: string;
  number: number;
  id: string;
  /** For example `2026-09-01T12:00:00.000Z`. */
  time: string;
  producers: readonly { address: string; signer: string }[];
};

/** The network has 27 super representatives; a private one may have fewer. */
const MAX_PRODUCERS = 27;

/** Returns the checkpoint that this release ships for a network, or `null`. */
export function shippedCheckpoint(network: Network): Checkpoint | null {
  const file = SHIPPED[network];
  return file === undefined ? null : readCheckpoint(file);
}

export function writeCheckpoint({ time, producers, ...rest }: Checkpoint): CheckpointFile {
  return {
    ...rest,
    time: toIso(time),
    producers: producers.map(({ account, signer }) => ({
      address: accountToAddress(account),
      signer: accountToAddress(signer),
    })),
  };
}

/** Reads a checkpoint from untrusted JSON. Throws `INVALID_ARGUMENT`, which names the problem. */
export function readCheckpoint(json: unknown): Checkpoint {
  const { network, number, id, time, producers } = asObject(json);
  if (typeof network !== 'string' || !isNetwork(network)) throw wrong('"network" is not a network');
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 1)
    throw wrong('"number" is not a height');
  const prefix = number.toString(16).padStart(16, '0');
  if (typeof id !== 'string' || !/^[0-9a-f]{64}$/.test(id) || !id.startsWith(prefix)) {
    throw wrong(`"id" is not the id of block ${number}, 64 hexadecimal characters that begin with ${prefix}`);
  }
  const timeMs = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  if (!(timeMs >= 0)) throw wrong('"time" is not a valid time');
  if (!Array.isArray(producers) || producers.length < 1 || producers.length > MAX_PRODUCERS) {
    throw wrong(`"producers" is not a list of 1 to ${MAX_PRODUCERS}`);
  }
  const members = producers.map((each: unknown) => {
    const { address, signer } = asObject(each);
    return { account: readAccount(address), signer: readAccount(signer) };
  });
  if (new Set(members.map(({ account }) => account)).size !== members.length) throw wrong('a producer appears twice');
  return { network, number, id, time: unixMs(timeMs), producers: members };
}

function readAccount(address: unknown): AccountHex {
  const parsed = parseAddress(typeof address === 'string' ? address : '');
  if (parsed.kind === 'ok') return parsed.account;
  throw wrong(`a producer has no valid "address" or "signer": ${parsed.reason}`);
}

function wrong(what: string): AppError {
  return invalidArgument`this is not a checkpoint: ${what}`;
}
