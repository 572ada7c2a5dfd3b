export * from './devnet.ts';
export { FAKE_USDT, MULTISEND, PAYER, PENNILESS, STRANGER, USDT } from './evm/keys.ts';
export type { Fault } from './faults/faults.ts';
export { createPayer, type Payer } from './payer.ts';
