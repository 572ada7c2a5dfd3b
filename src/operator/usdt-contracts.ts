import type { Network } from '../domain/network.ts';
import type { AccountHex } from '../tron/address.ts';
import { DEVNET_CONTRACTS, USDT_CONTRACTS } from '../tron/usdt.ts';

/** Every contract of USDT, the devnet's fake one, and those of the networks that are configured: none is an address of a wallet. */
export function usdtContracts({
  networks,
}: {
  networks: Partial<Record<Network, { usdt: AccountHex }>>;
}): AccountHex[] {
  return [
    ...[USDT_CONTRACTS.mainnet.account, USDT_CONTRACTS.nile.account, DEVNET_CONTRACTS.usdt, DEVNET_CONTRACTS.fakeUsdt],
    ...Object.values(networks).map(({ usdt }) => usdt),
  ];
}
