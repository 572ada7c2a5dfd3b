import { secp256k1 } from '@noble/curves/secp256k1.js';
import { accountToAddress } from '@quittance/tron/address';
import { accountFromPublicKey } from '@quittance/tron/public-key';
import { AppError } from '../../../src/core/domain/errors.ts';
import { encodeId } from '../../../src/core/domain/ids.ts';
import { unixMs } from '../../../src/core/domain/time.ts';
import type { KeyRing } from '../../../src/core/runtime/key-ring.ts';
import type { Database } from '../../../src/core/store/db/database.ts';
import { createWebhookSecret } from '../../../src/core/webhooks/sign.ts';
import { commandActor } from '../../../src/faces/operator/actor.ts';
import { NO_MANIFEST } from '../../../src/faces/operator/operation.ts';
import { activateAddresses, addAddresses, retireAddresses } from '../../../src/faces/operator/subjects/addresses.ts';
import { enableEndpoint, rotateEndpointSecret } from '../../../src/faces/operator/subjects/webhook-sending.ts';
import type { Random } from '../engine/random.ts';
import type { SimulatedProcess } from '../engine/simulated-process.ts';
import type { KnownAccount } from '../truth.ts';
import type { Receivers } from './receivers.ts';
import type { Shop } from './shops.ts';

export type Candidate = ReturnType<typeof newCandidate>;

/** An address whose key isn't needed. */
export function newCandidate(random: Random) {
  const account = accountFromPublicKey(secp256k1.getPublicKey(random.bytes(32), false));
  return { account, address: accountToAddress(account) };
}

/** How long a previous secret still signs beside the new one. */
const OVERLAP_MS = 10 * 60_000;

const OPERATOR = commandActor('simulated');
const NO_NODES = { sandbox: false, networks: {} };

/** If its command died, an address was never added and can't be retired; an existing one can't be added. */
function nullIfRefused(error: unknown): null {
  if (error instanceof AppError && (error.code === 'NOT_FOUND' || error.code === 'CONFLICT')) return null;
  throw error;
}

/** People at a terminal: each command is a separate process, which may die like any other. */
export function createOperators({
  random,
  openTerminal,
  shops,
  receivers,
  addressesOf,
  keyRing,
  headNumber,
  accounts,
  canaries,
  takeLine,
}: {
  random: Random;
  openTerminal(): { process: SimulatedProcess; db: Database };
  shops: readonly Shop[];
  receivers: Receivers;
  /** The addresses of each project. */
  addressesOf: Map<string, Candidate[]>;
  keyRing: KeyRing;
  headNumber(): number;
  /** Addresses whose addition was acknowledged. */
  accounts: KnownAccount[];
  /** Secrets that must not be visible to anyone. */
  canaries: string[];
  takeLine(line: string): void;
}) {
  const acting = ({ process, db }: ReturnType<typeof openTerminal>) => ({
    ...{
      db,
      operator: 'simulated',
      random: random.bytes,
      config: NO_NODES,
      addressGuard: NO_MANIFEST,
    },
    now: () => unixMs(process.nowMs()),
  });
  const addTo = async (shop: Shop, candidate: Candidate) => {
    const terminal = openTerminal();
    // Remembered before it's added, because a command that dies may have added it.
    addressesOf.get(shop.id)?.push(candidate);
    const entries = [{ text: candidate.address, place: 'argument 1' }];
    const wanted = { projectId: encodeId('prj', shop.id), policy: undefined, entries, isFresh: true, isChecked: false };
    const add = () => addAddresses.run(acting(terminal), OPERATOR, wanted);
    if ((await terminal.process.run(() => add().catch(nullIfRefused))) === null) return;
    accounts.push({ account: candidate.account, projectId: shop.id, headNumber: headNumber() });
  };
  const deeds: (() => Promise<unknown>)[] = [
    // Adds an address.
    () => addTo(random.pick(shops), newCandidate(random)),
    // Retires an address, or activates it again.
    async () => {
      const shop = random.pick(shops);
      const [first, ...others] = addressesOf.get(shop.id) ?? [];
      // One stays active, so that there are always free amounts.
      if (first === undefined || others.length === 0) return;
      const terminal = openTerminal();
      const wanted = { projectId: encodeId('prj', shop.id), addresses: [random.pick(others)], note: null };
      const change = random.chance(0.5) ? retireAddresses : activateAddresses;
      await terminal.process.run(() => change.run(acting(terminal), OPERATOR, wanted).catch(nullIfRefused));
    },
    // Gives an endpoint a new secret.
    async () => {
      const receiver = random.pick(receivers.receivers);
      const secret = createWebhookSecret(random.bytes);
      canaries.push(secret);
      // The shop accepts both before the change, as the documentation recommends.
      receiver.secrets.unshift(secret);
      const terminal = openTerminal();
      const given = { endpointId: receiver.endpointId, secret, overlapMs: OVERLAP_MS };
      await terminal.process.run(() =>
        rotateEndpointSecret(
          { ...acting(terminal), ...{ keyRing, now: unixMs(terminal.process.nowMs()) } },
          OPERATOR,
          given,
        ),
      );
    },
    // Enables an endpoint.
    async () => {
      const terminal = openTerminal();
      const { endpointId } = random.pick(receivers.receivers);
      await terminal.process.run(() =>
        enableEndpoint.run(acting(terminal), OPERATOR, { endpointId: encodeId('whe', endpointId) }),
      );
    },
  ];
  return {
    addTo,
    /** Performs a random action. */
    act: async (): Promise<void> => {
      await random
        .pick(deeds)()
        .catch((error: unknown) => takeLine((error as Error).message));
    },
    /** Once all is well again, makes waiting deliveries due, as the documentation recommends after a receiver's outage. */
    enableAll: async (): Promise<void> => {
      for (const { endpointId } of receivers.receivers) {
        const terminal = openTerminal();
        await terminal.process.run(() =>
          enableEndpoint.run(acting(terminal), OPERATOR, { endpointId: encodeId('whe', endpointId) }),
        );
      }
    },
  };
}
