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

export async function printAdded(
  terminal: Terminal,
  args: readonly string[],
  { file, by, ...input }: Options,
): Promise<Result> {
  const entries = await readAddresses(args, file, terminal.stdin);
  const { view, projectPolicy } = await runOperation(terminal, addAddressesOperation, { ...input, entries }, { by });
  const next = [
    ...otherPolicyNote(view, view.policy, projectPolicy),
    ...(view.activation === null ? [] : describeActivation(view.activation, view.added.length)),
  ];
  return {
    data: view,
    text: view.added.map((address) => `added ${address}`).join('\n'),
    ...(next.length === 0 ? {} : { next: next.join('\n') }),
  };
}
