import { confirmAddressChange } from '../../operator/address-changes/confirm-change.ts';
import {
  listAddressChangesOperation,
  withdrawAddressChangeOperation,
} from '../../operator/address-changes/operations.ts';
import type { AddressChangeView } from '../../operator/address-changes/views.ts';
import { cliActor } from '../terminal/operator.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

/** A line for each address of a change, so that each can be compared with a wallet. */
type Line = AddressChangeView & { address: string };

const LINES: readonly Column<Line>[] = [
  ['CHANGE', ({ changeId }) => changeId],
  ['ADDRESS', ({ address }) => address],
  ['POLICY', ({ policy }) => policy],
  ['STATE', ({ state }) => state],
  ['PROPOSED BY', ({ proposedBy: { kind, name } }) => `${name} (${kind})`],
  ['AT', ({ proposedAt }) => proposedAt],
  ['ADDED AT', ({ dueAt, state }) => (state === 'waiting' ? dueAt : '')],
  ['ENDED', ({ endedAt, endedBy }) => (endedAt === null ? '' : `${endedAt} by ${endedBy}`)],
];

/** Shows the additions that wait, and the newest that ended. */
export async function printPending(terminal: Terminal, projectId: string | undefined): Promise<Result> {
  const data = await runOperation(terminal, listAddressChangesOperation, { projectId });
  const lines = data.data.flatMap((change): Line[] => change.addresses.map((address) => ({ ...change, address })));
  const isWaiting = data.data.some(({ state }) => state === 'waiting');
  const next = isWaiting
    ? 'yours: another owner confirms them in the console, or "quittance address confirm chg_…" does here. Not yours: "quittance address withdraw chg_…", and find out who proposed them'
    : 'no address waits';
  return { data, text: tableOf(LINES, lines), next };
}

/** Adds the addresses of a change at once: whoever runs commands on the machine has the database. */
export async function printConfirmed(terminal: Terminal, changeId: string, by: string | undefined): Promise<Result> {
  const actor = cliActor(terminal, by);
  const data = await withDatabase(terminal, (deps) => confirmAddressChange(deps, actor, { changeId }));
  const lines = [
    ...data.added.map((address) => `added ${address}`),
    ...data.passedOver.map((address) => `${address} is passed over: it is in the project by now`),
  ];
  return { data, text: lines.join('\n') };
}

export async function printWithdrawn(terminal: Terminal, changeId: string, by: string | undefined): Promise<Result> {
  const data = await runOperation(terminal, withdrawAddressChangeOperation, { changeId }, { by });
  return { data, text: data.addresses.map((address) => `withdrawn ${address}`).join('\n') };
}
