import type { Scenario } from '../../devnet/payer/scenarios.ts';
import type { OrphanedPayment } from './orphan-payment.ts';

const UNMATCHED =
  'the invoice stays as it is, and the transfer appears under `quittance transfers list` as unmatched once its block is irreversible';
const paysOther = (reference: string) =>
  `the invoice stays as it is; but exactly this is what invoice ${reference} asks for at the same address: it becomes PAID, or, if it has its payment already, the transfer appears under \`quittance transfers list\` as a duplicate`;
const UNSEEN = 'the invoice stays as it is, and no transfer is recorded';
const DUPLICATE =
  'the invoice has its payment already, so the transfer appears under `quittance transfers list` as a duplicate';
const PAYS = 'the invoice becomes CONFIRMING when the transfer is in a block, and PAID once that block is irreversible';

/**
 * Says in a sentence what was sent, and what will come of it. `hasPayment`: the invoice had a payment before. `hit`: the other
 * invoice whose amount was sent by mistake.
 */
export function describePayment(
  scenario: Scenario,
  { payable, sent, hasPayment, hit }: { payable: string; sent: string; hasPayment: boolean; hit: string | null },
): string {
  const result = hit === null ? UNMATCHED : paysOther(hit);
  const counts = hasPayment ? DUPLICATE : PAYS;
  const mistaken = `${sent} was sent in place of ${payable}`;
  switch (scenario) {
    case 'exact':
    case 'orphaned':
      return `exactly the payable amount was sent: ${counts}`;
    case 'contract':
      return `exactly the payable amount was sent by a contract, so that only a log shows it: ${counts}`;
    case 'two-in-one':
      return hasPayment
        ? `one transaction sent both payable amounts: the second invoice is paid by it, and of the first, ${DUPLICATE}`
        : 'one transaction pays both invoices: each becomes CONFIRMING when it is in a block, and PAID once that block is irreversible';
    case 'twice': {
      const second = hasPayment
        ? 'both transfers appear'
        : 'the first transfer pays the invoice, and the second appears';
      return `exactly the payable amount was sent twice: ${second} under \`quittance transfers list\` as a duplicate`;
    }
    case 'late':
      return 'the deadline was brought forward (which only a local network allows) and the invoice expired, and then exactly the payable amount was sent: the invoice becomes CONFIRMING and PAID all the same, and its payment is marked late';
    case 'short':
      return `${mistaken}, which is too little: ${result}`;
    case 'over':
      return `${mistaken}, which is too much: ${result}`;
    case 'rounded':
      return `${mistaken}, which is rounded: ${result}`;
    case 'rounded-3':
    case 'rounded-4':
      return sent === payable
        ? `${sent} has no more than ${scenario.slice(-1)} decimals, so exactly the payable amount was sent: ${counts}`
        : `${mistaken}, which is cut off after ${scenario.slice(-1)} decimals: ${result}`;
    case 'below-minimum':
      return `${mistaken}, because the exchange sends no less: ${result}`;
    case 'typo':
      return `${mistaken}, with one digit wrong: ${result}`;
    case 'swapped':
      return `${mistaken}, with two neighbouring digits swapped: ${result}`;
    case 'fee':
      return `${mistaken}, because a fee was taken out of it: ${result}`;
    case 'requested-amount':
      return `${mistaken}, which is the amount of the order without the added digits: ${result}`;
    case 'to-retired':
      return `exactly the payable amount was sent to a retired address of the demo project, which gets no new invoices but is watched for ever: ${result}`;
    case 'wrong-address':
      return `exactly the payable amount was sent to an address that belongs to no project: ${UNSEEN}`;
    case 'fake-token':
      return `the payable amount was sent of another token that calls itself USDT, which is worth nothing: ${UNSEEN}`;
    case 'zero-value':
      return `a transfer of 0 was sent, as address poisoning does: ${UNSEEN}`;
    case 'reverted':
      return `exactly the payable amount was sent from a wallet that has no USDT, so the call stands in a block as REVERT and moves nothing: ${UNSEEN}`;
    case 'out-of-energy':
      return `exactly the payable amount was sent with a fee limit of 1 TRX, so the call stands in a block as OUT_OF_ENERGY, costs its fee and moves nothing: ${UNSEEN}`;
  }
}

/** The same once the network has orphaned the payment's block. */
export function describeOrphaned({ blockNumber, blocks, wasConfirming }: OrphanedPayment): string {
  const seen = wasConfirming ? 'the invoice became CONFIRMING' : 'the invoice was not seen CONFIRMING in time';
  const branch = blocks === 1 ? `block ${blockNumber}` : `block ${blockNumber} and what followed it`;
  return `exactly the payable amount was sent, and ${seen}; then the network orphaned ${branch}, and the payment is gone: the invoice goes back to PENDING, or EXPIRED if its time is over`;
}
