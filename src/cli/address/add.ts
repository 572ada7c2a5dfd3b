import type { Policy } from '../../domain/policy.ts';
import { addAddressesOperation } from '../../operator/addresses/operations.ts';
import { runOperation } from '../terminal/run-operation.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { describeActivation } from './activation.ts';
import { otherPolicyNote } from './other-policy-note.ts';
import { readAddresses } from './read-addresses.ts';

type Options = {
  projectId: string | undefined;
  file: string | undefined;
  policy: Policy | undefined;
  by: string | undefined;
  /** Whether nodes are asked of the addresses. */
  isChecked: boolean;
  isFresh: boolean;
};

/** Adds addresses. What a server was asked to add may wait there. */
export async function printAdded(
  terminal: Terminal,
  args: readonly string[],
  { file, by, ...input }: Options,
): Promise<Result> {
  const entries = await readAddresses(args, file, terminal.stdin);
  const { kind, view, projectPolicy } = await runOperation(
    terminal,
    addAddressesOperation,
    { ...input, entries },
    { by },
  );
  const addresses = kind === 'added' ? view.added : view.proposed.addresses;
  const next = [
    ...(kind === 'proposed' ? [waitNote(view.proposed)] : []),
    ...otherPolicyNote(view, view.policy, projectPolicy),
    ...(view.activation === null ? [] : describeActivation(view.activation, addresses.length)),
  ];
  return {
    data: view,
    text: addresses.map((address) => `${kind} ${address}`).join('\n'),
    ...(next.length === 0 ? {} : { next: next.join('\n') }),
  };
}

function waitNote({ changeId, dueAt }: { changeId: string; dueAt: string }): string {
  return `they take no invoices yet: they are added at ${dueAt}, or when another owner confirms ${changeId} in the console; "quittance address withdraw ${changeId}" stops it`;
}
