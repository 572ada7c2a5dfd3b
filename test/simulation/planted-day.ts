import { bytesToHex } from '@noble/hashes/utils.js';
import { createPoison } from '@quittance/devnet';
import { PAYER, USDT } from '@quittance/devnet/evm/keys';
import { createPayer } from '@quittance/devnet/payer';
import { accountToAddress } from '@quittance/tron/address';
import { check } from './invariants/all.ts';
import { merged, type PlantedBug } from './planted-bugs.ts';
import type { Acknowledged } from './truth.ts';
import type { Shop } from './world/shops.ts';
import { createWorld, type World } from './world/world.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
/** The shortest that a project may have, so that the day is short. */
const LIFETIME_MS = 5 * MINUTE_MS;
const ORDERS = 5;
const KIOSK_MICRO = 36_000_000n;
const READS = 30;

/** The cheapest world: one process, one node, few blocks, and nothing that the day doesn't do. */
const PLAN = { seed: 12, minutes: 0, troubles: new Set(['thieves'] as const) };
const SHAPE = {
  slotMs: 30 * SECOND_MS,
  processes: [['api', 'watcher', 'webhooks']],
  nodeCount: 1,
  languages: ['twin'],
  agreement: 1,
  producers: 5,
} as const;

/**
 * Simulates a day on which everything happens once that a promise is about: orders, one of them for an unmatched transfer; a repeated
 * request; payments that are exact, too small, duplicate, late, in time but unseen, and in a block with bytes that JSON hides; receivers
 * that act and fail; and a deadline while the node is down. Returns the violations. With planted bugs, returns those to be found, and ends
 * once each was. `atRest` is called at its end.
 */
export async function liveDay(
  planted: readonly PlantedBug[],
  atRest: (world: World) => Promise<void> = async () => undefined,
): Promise<string[]> {
  const plant = merged(...planted.map((bug) => bug.plant ?? {}));
  const world = await createWorld(PLAN, { plant, shape: SHAPE, isIdle: true });
  const violations: string[] = [];
  try {
    await world.query(`update public.projects set invoice_lifetime_ms = ${LIFETIME_MS}`);
    for (const { without } of planted) if (without !== undefined) await world.query(without);
    const lie = planted.flatMap((bug) => bug.lie ?? [])[0];
    const day = beginDay(world, lie);
    for (const part of PARTS) {
      await part.happens(day);
      // A bug shows before the queues are empty. Other violations at that time are ignored.
      const found = await check(world.truth, planted.length === 0 ? part.look : 'quiet');
      if (planted.length === 0) violations.push(...found.map((line) => `${part.what}: ${line}`));
      else violations.push(...found.filter((line) => planted.some((bug) => shows(line, bug))));
      if (planted.length > 0 && planted.every((bug) => violations.some((line) => shows(line, bug)))) return violations;
    }
    await atRest(world);
    return violations;
  } finally {
    await world.stop();
  }
}

/** Whether a violation is of the bug's invariant, and of the kind that the bug causes. */
export function shows(line: string, { number, found }: PlantedBug): boolean {
  return line.startsWith(`invariant ${number} `) && found.test(line);
}

type Day = ReturnType<typeof beginDay>;

/** The participants of a day. `lie` is the node's lie whenever it answers. */
function beginDay(world: World, lie: PlantedBug['lie']) {
  const { shops, kiosk, integrators, receivers, nodes, chain } = world.hands;
  const [bakery, tailor] = [given(shops[0]), given(shops[1])];
  const receiverOf = (shop: Shop) => given(receivers.receivers.find(({ projectId }) => projectId === shop.id));
  const node = given(nodes.nodes[0]);
  const reported: Acknowledged[] = [];
  const wallet = createPayer({
    nodeUrl: 'http://wallet.test',
    privateKey: bytesToHex(PAYER.privateKey),
    ask: chain.askHealthyNode,
    now: chain.now,
  });
  return {
    ...{
      world,
      bakery,
      tailor,
      kiosk: given(kiosk ?? undefined),
      integrators,
      reported,
      receivers: { bakery: receiverOf(bakery), tailor: receiverOf(tailor) },
    },
    minutes: (count: number) => world.run(count * MINUTE_MS),
    /** Nothing progresses unless the world runs. */
    during: async <Result>(work: Promise<Result>, ms = 5 * SECOND_MS): Promise<Result> => {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      work.then(end, end);
      await world.run(ms);
      // A slow statement may take longer, and would never end in a world that is stopped.
      for (let more = 0; more < 60 && !isOver; more += 1) await world.run(SECOND_MS);
      return work;
    },
    pay: async (index: number, moreMicro = 0n) => {
      const { account, payableMicro } = given(reported[index]);
      const amountMicro = payableMicro + moreMicro;
      await wallet.transfer({ contract: accountToAddress(USDT), to: accountToAddress(account), amountMicro });
    },
    /** Sends an amount to the kiosk that no order asks for. */
    sendToKiosk: async (amountMicro: bigint) => {
      const { account } = given(world.truth.accounts.find(({ projectId }) => projectId === kiosk?.id));
      await wallet.transfer({ contract: accountToAddress(USDT), to: accountToAddress(account), amountMicro });
    },
    poison: createPoison(chain.ledger, chain.now),
    darken: () => node.setFaults({ kind: 'unavailable-503' }),
    /** The node answers again, honestly or not. */
    light: () => node.setFaults(...(lie === undefined ? [] : [{ kind: lie }])),
    calm: () => {
      node.setFaults();
      world.calm();
    },
  };
}

type Part = { what: string; look: 'step' | 'quiet'; happens(day: Day): Promise<void> };

const PARTS: readonly Part[] = [
  {
    what: 'money that fits no order, and an order for exactly that',
    look: 'step',
    happens: async ({ sendToKiosk, minutes, during, integrators, kiosk, light }) => {
      light();
      await sendToKiosk(KIOSK_MICRO);
      // One minute together with the order, so that everything after it is at the intended position in the slots.
      await minutes(55 / 60);
      given((await during(integrators.order(kiosk, KIOSK_MICRO))) ?? undefined);
    },
  },
  {
    what: 'orders',
    look: 'step',
    happens: async ({ bakery, tailor, receivers, integrators, reported, during, light }) => {
      light();
      receivers.bakery.temper = 'acts-and-fails';
      receivers.tailor.temper = 'fails';
      for (const shop of [...Array.from({ length: ORDERS }, () => bakery), tailor]) {
        reported.push(given((await during(integrators.order(shop))) ?? undefined));
      }
      await during(integrators.repeat());
      for (let reads = 0; reads < READS; reads += 1) await during(integrators.read(tailor), SECOND_MS);
    },
  },
  {
    what: 'payments in a block',
    look: 'step',
    happens: async ({ poison, pay, minutes }) => {
      poison('unknown-outer-field');
      await pay(0);
      await pay(0);
      await pay(1, -1n);
      await pay(ORDERS);
      await minutes(1);
    },
  },
  { what: 'payments irreversible', look: 'step', happens: ({ minutes }) => minutes(1.5) },
  {
    what: 'dark before a deadline',
    look: 'step',
    happens: async ({ receivers, darken, minutes }) => {
      receivers.bakery.temper = 'well';
      receivers.tailor.temper = 'well';
      darken();
      // The next payment is in the last block in time, some seconds before the deadline. The node answers again before that block is
      // irreversible.
      await minutes(1.2);
    },
  },
  {
    what: 'paid in time, and a deadline in the dark',
    look: 'step',
    happens: async ({ pay, minutes }) => {
      await pay(3);
      await minutes(1.2);
    },
  },
  {
    what: 'light, and paid late',
    look: 'step',
    happens: async ({ light, pay, minutes }) => {
      light();
      await pay(2);
      await minutes(4);
    },
  },
  {
    what: 'a minute after the last fault',
    look: 'step',
    happens: async ({ calm, minutes }) => {
      calm();
      await minutes(1.1);
    },
  },
  { what: 'at rest', look: 'quiet', happens: ({ minutes }) => minutes(5) },
];

function given<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the day needs something that the world does not have');
  return value;
}
