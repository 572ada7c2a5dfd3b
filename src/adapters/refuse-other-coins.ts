import type { Fields } from '../webhooks/adapter-signature.ts';
import { CODES, Refusal } from './refusal.ts';

/** What shops call USDT on TRON, where one word says both. */
const BOTH = new Set(['', 'usdt', 'usdt.trc20', 'usdt.tron', 'usdt-trc20', 'usdt_trc20', 'usdttrc20', 'trc20']);
const COIN = new Set(['', 'usdt']);
const NETWORK = new Set(['', 'tron', 'trc20']);

/**
 * Refuses an order of anything but USDT on TRON, and one that says by itself what must not come from a shop: the rate, and the address.
 * `both`: the fields of its dialect in which one word says coin and network.
 */
export function refuseOtherCoins(fields: Fields, both: readonly string[]): void {
  const refuse = (name: string, known: ReadonlySet<string>) => {
    const value = fields.get(name) ?? '';
    if (known.has(value.trim().toLowerCase())) return;
    const shown = JSON.stringify(value.slice(0, 30));
    throw new Refusal(
      CODES.asset,
      `supported asset not found: ${name} is ${shown}, and here is USDT on TRON (usdt.trc20)`,
    );
  };
  for (const name of both) refuse(name, BOTH);
  refuse('token', COIN);
  refuse('network', NETWORK);
  for (const name of ['rate', 'address']) {
    if ((fields.get(name) ?? '') === '') continue;
    throw new Refusal(CODES.fields, `${name} is set by the operator: leave it out`);
  }
}
