import type { ActivationView } from '../../operator/addresses/views.ts';

/** Describes the answers of nodes about added addresses, for people. */
export function describeActivation(activation: ActivationView, added: number): string[] {
  const { checked, neverActivated, contracts, notCheckedBecause } = activation;
  const lines: string[] = [];
  if (neverActivated.length > 0) {
    lines.push(
      `never activated: ${neverActivated.join(', ')}`,
      '  They receive all the same. To spend from one, it must first be activated (send it about 1 TRX) and needs energy.',
      '  Whoever is the first to send USDT to an address that never held any pays about double the energy.',
      '  If you expected an address that is in use already, compare it with your wallet now.',
    );
  }
  if (contracts.length > 0) {
    lines.push(
      `NOT A WALLET: ${contracts.join(', ')} is a smart contract; money sent there is probably lost.`,
      `  Unless you control it: quittance address retire ${contracts.join(' ')}`,
    );
  }
  if (checked < added) {
    const which = checked === 0 ? '' : ` for ${added - checked} of ${added} addresses`;
    lines.push(`not checked${which} whether they were ever activated: ${notCheckedBecause ?? 'no node answered'}`);
  }
  return lines;
}
