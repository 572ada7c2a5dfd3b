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

/** The cheapest world: one process, one node, few blocks, and nothing that the day does not do. */
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
 * A day on which everything happens once that a promise is about: orders, one of them for what came and fits none, a repetition, payments that are exact, too small, made
 * twice, late, in time but unseen, and in a block whose bytes JSON hides, receivers that act and fail, a deadline while the node is down. Returns the violations; with
 * planted bugs those that are meant to be found, until each is. `atRest` is called at its end.
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
      // A bug shows before the queues are empty; what else is found then is not looked at.
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

/** Whether it is a violation of the bug's invariant, and of the kind that the bug makes. */
export function shows(line: string, { number, found }: PlantedBug): boolean {
  return line.startsWith(`invariant ${number} `) && found.test(line);
}

type Day = ReturnType<typeof beginDay>;

/** Who takes part in a day. `lie` is how the node lies whenever it answers. */
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
    /** Nothing goes on unless the world does. */
    during: async <Result>(work: Promise<Result>, ms = 5 * SECOND_MS): Promise<Result> => {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      work.then(end, end);
      await world.run(ms);
      // A slow statement may take longer, and would never end in a world that stands still.
      for (let more = 0; more < 60 && !isOver; more += 1) await world.run(SECOND_MS);
      return work;
    },
    pay: async (index: number, moreMicro = 0n) => {
      const { account, payableMicro } = given(reported[index]);
      const amountMicro = payableMicro + moreMicro;
      await wallet.transfer({ contract: accountToAddress(USDT), to: accountToAddress(account), amountMicro });
    },
    /** Somebody sends the kiosk what it asked nobody for. */
    sendToKiosk: async (amountMicro: bigint) => {
      const { account } = given(world.truth.accounts.find(({ projectId }) => projectId === kiosk?.id));
      await wallet.transfer({ contract: accountToAddress(USDT), to: accountToAddress(account), amountMicro });
    },
    poison: createPoison(chain.ledger, chain.now),
    darken: () => node.setFaults({ kind: 'unavailable-503' }),
    /** The node answers again, as well or badly as it does. */
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
      // With the order a minute, so that what follows stands where it is to in the slots.
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
      // The payment after this is in the last block in time, some seconds before it; and the light comes before that block is irreversible.
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
