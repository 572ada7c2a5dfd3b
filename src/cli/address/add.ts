import type { Policy } from '../../domain/policy.ts';
import { type AddDeps, addAddresses } from '../../operator/addresses/add-addresses.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';
import { usingNodes } from '../terminal/with-nodes.ts';
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
  { file, by, isChecked, ...input }: Options,
): Promise<Result> {
  const actor = cliActor(terminal, by);
  const entries = await readAddresses(args, file, terminal.stdin);
  const { view, projectPolicy } = await withDatabase(terminal, (deps) => {
    const withNodes: AddDeps['withNodes'] = (network) => (ask) =>
      usingNodes(terminal, deps, network, ({ pool }) => ask(pool));
    return addAddresses({ ...deps, withNodes: isChecked ? withNodes : null }, actor, { ...input, entries });
  });
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
