import { createHash, randomBytes } from 'node:crypto';
import { createPayer } from '../../devnet/payer/payer.ts';
import { AppError } from '../../domain/errors.ts';
import { decodeId } from '../../domain/ids.ts';
import { unixMs } from '../../domain/time.ts';
import { commandActor } from '../../operator/actor.ts';
import { readCandidates } from '../../operator/input/read-candidates.ts';
import { NO_MANIFEST } from '../../operator/operation.ts';
import { addAddresses, retireAddresses } from '../../operator/subjects/addresses.ts';
import { refundTransfer as tieRefund } from '../../operator/subjects/transfer-decisions.ts';
import { systemClock } from '../../runtime/clock.ts';
import { pause } from '../listen/pause.ts';
import type { Sandbox } from '../sandbox/with-sandbox.ts';
import type { FeedEvent, Until } from './until.ts';

const ACTOR = commandActor('trigger');
const AMOUNT_MICRO = 1_000_000n;
/** Enough for the energy of a transfer. */
const FEE_SUN = 100_000_000n;
/** How often the ledger is asked whether it has what left by now. */
const POLL_MS = 200;

/** Sends something to an address of its own, sends it back from there, and ties the two. */
export async function refundTransfer(
  sandbox: Sandbox,
  { until, signal }: { until: Until; signal: AbortSignal },
): Promise<FeedEvent> {
  const { db, usdtContract: contract } = sandbox;
  const deps = { db, now: () => unixMs(systemClock.now()), random: randomBytes };
  const payer = createPayer({ nodeUrl: sandbox.nodeUrl, privateKey: sandbox.payer.privateKey });
  // Addresses are never deleted, so one is enough: the payer's key leads to the same one again.
  const own = payer.withKey(createHash('sha256').update(`refund ${sandbox.payer.privateKey}`).digest('hex'));
  await adopt(deps, sandbox, own.address);
  await payer.sendTrx({ to: own.address, amountSun: FEE_SUN });
  const came = await payer.transfer({ contract, to: own.address, amountMicro: AMOUNT_MICRO });
  const { data } = await until((event) => event.type === 'transfer.unmatched' && event.data['txId'] === came);
  const transferId = decodeId('trf', String(data['transferId']));
  if (transferId === null) throw new Error('the event names no transfer');
  const txId = await own.transfer({ contract, to: payer.address, amountMicro: AMOUNT_MICRO });
  // It is on the chain before it is in the ledger.
  while (!(await isTied(deps, { transferId, txId, note: '', invoice: null }))) await pause(POLL_MS, signal);
  return until((event) => event.type === 'transfer.refunded' && event.data['txId'] === came);
}

async function isTied(...[deps, wanted]: [Parameters<typeof tieRefund.run>[0], Parameters<typeof tieRefund.run>[2]]) {
  return tieRefund.run(deps, ACTOR, wanted).then(
    () => true,
    (error: unknown) => isConflict(error) && false,
  );
}

/** It gets no invoices, and is watched all the same. */
async function adopt(
  deps: Parameters<typeof tieRefund.run>[0],
  { projectId }: Sandbox,
  address: string,
): Promise<void> {
  const adding = { ...deps, config: { sandbox: true, networks: {} }, addressGuard: NO_MANIFEST };
  const entries = [{ text: address, place: 'the address' }];
  await addAddresses
    .run(adding, ACTOR, { projectId, entries, policy: undefined, isFresh: true, isChecked: false })
    .catch(isConflict);
  const { good: addresses } = readCandidates(entries, []);
  await retireAddresses.run(deps, ACTOR, { projectId, addresses, note: null });
}

/** Another error is thrown on. */
function isConflict(error: unknown): true {
  if (error instanceof AppError && error.code === 'CONFLICT') return true;
  throw error;
}
