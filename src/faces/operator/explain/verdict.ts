import { accountToAddress } from '@quittance/tron/address';
import { encodeId } from '../../../core/domain/ids.ts';
import { Message, say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt } from '../../../core/domain/money.ts';
import type { Actor } from '../actor.ts';
import { shorten } from '../input/problems.ts';
import type { TransferRecord } from '../subjects/transfer-export.ts';
import type { Step } from './explanation.ts';
import type { DescribedTransfer, SetAsideFacts } from './facts.ts';
import { timelineOfRefund } from './timeline.ts';

/** A sentence in a verdict, possibly with next steps. A row whose condition doesn't hold is false, `null` or `undefined`. */
export type Sentence = Text | readonly [says: Text, ...next: Step[]] | false | null | undefined;

export type Verdict = { verdict: Text[]; next: Step[] };

/** Collects the rows whose condition holds. */
export function judge(...rows: readonly Sentence[]): Verdict {
  const held = rows.flatMap((row): (readonly [Text, ...Step[]])[] => {
    if (!row) return [];
    return typeof row === 'string' || row instanceof Message ? [[row]] : [row];
  });
  return { verdict: held.map(([says]) => says), next: held.flatMap(([, ...next]) => next) };
}

/** Returns the first row whose condition holds. The last row must always hold. */
export function first<Words>(...rows: readonly (Words | false | null | undefined)[]): Words {
  return rows.find(Boolean) as Words;
}

/** An unmatched transfer needs only one decision, so a resolved one has no next step. */
export const stepsToResolve = ({ transfer, resolutions }: DescribedTransfer): Step[] => {
  const hint = { command: 'transfers resolve', args: [encodeId('trf', transfer.id)], input: { resolution: '…' } };
  return resolutions.length > 0 ? [] : [{ says: 'to resolve the transfer', hint }];
};

export const usdt = (micro: TransferRecord['amountMicro']) => `${formatAmount(micro)} USDT`;
export const nameOf = ({ externalId }: { externalId: string }) => shorten(externalId, 60);

export function describeResolved({ transfer, resolutions }: DescribedTransfer): string {
  const last = resolutions.at(-1);
  if (last === undefined) return 'The transfer is not resolved.';
  return `${shorten(last.resolvedBy)} resolved it as ${last.resolution}${timelineOfRefund(transfer)}.`;
}

export const TAMPERED =
  'Do not rely on this explanation: an open alarm says that one of its rows was changed, is missing or has no seal. See docs/guides/tampering.md.';

/** Judges a payment that Quittance can't record, or an invoice whose status can't change, until a row is repaired. */
export function judgeSetAside({ network, reason, transfer }: SetAsideFacts): Sentence {
  const what =
    transfer === null
      ? 'Quittance has set this aside'
      : `${usdt(transfer.amount as MicroUsdt)} arrived at ${accountToAddress(transfer.to)} in block ${transfer.blockNumber} (transaction ${transfer.txId}), but Quittance has set the payment aside`;
  return [
    `${what}, because a row fails its check: ${shorten(reason, 300)}. Quittance continues within minutes of the repair.`,
    {
      says: 'to see the alarm set-aside, and then repair the row',
      hint: { command: 'chain status', input: { network } },
    },
  ];
}

export const SEARCHED = say`Without ${{ field: 'projectId' }}, Quittance searches every project that you may see.`;

export function nameAddresses(projects: Actor['projects']): string {
  const [only, ...others] = projects ?? [];
  if (only === undefined) return 'your addresses';
  return others.length === 0
    ? `the addresses of the project ${encodeId('prj', only)}`
    : `the addresses of the ${others.length + 1} projects that you may see`;
}
