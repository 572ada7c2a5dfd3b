import { AppError } from '../domain/errors.ts';
import { say } from '../domain/message.ts';
import { isNetwork, type Network } from '../domain/network.ts';
import { clip } from './input/clip.ts';
import type { NodeDeps } from './node-connection.ts';
import type { OperationDeps } from './operation.ts';

/** The network of that name, if it is configured; without a name, the only one there is. Errors: `INVALID_ARGUMENT`. */
export function selectNetwork(configured: readonly Network[], name: string | undefined): Network {
  const [only] = configured;
  if (name === undefined) {
    if (only !== undefined && configured.length === 1) return only;
    throw new AppError(
      'INVALID_ARGUMENT',
      say`there are several networks: say which with ${{ field: 'network' }}, ${configured.join(' or ')}`,
    );
  }
  if (isNetwork(name) && configured.includes(name)) return name;
  const problem = isNetwork(name) ? 'is not configured here' : 'is no network';
  throw new AppError(
    'INVALID_ARGUMENT',
    say`${{ field: 'network' }} ${clip(name)} ${problem}; configured: ${configured.join(', ')}`,
  );
}

/** Runs what asks the nodes of a network; without a name, of the only one there is. */
export async function withNodesOf<Output>(
  { networks, nodes }: Pick<OperationDeps, 'networks' | 'nodes'>,
  name: string | undefined,
  work: (deps: NodeDeps) => Promise<Output>,
): Promise<Output> {
  const network = selectNetwork(networks, name);
  const { withNodes } = await nodes();
  return withNodes(network, work);
}
