import type { Actor } from '../actor.ts';
import { reconcileNow } from '../chain/reconcile-now.ts';
import type { ReconciledView } from '../chain/views.ts';
import type { OperationDeps } from '../operation.ts';
import { listBalances } from './list-balances.ts';
import type { ComparedBalancesView } from './views.ts';

type Deps = Pick<OperationDeps, 'db' | 'now' | 'nodes' | 'addressGuard'>;

/** What nodes were asked less than this ago they are not asked again: their requests are counted. */
const NEW_MS = 60_000;
/** How long a person waits for the ledger to reach the nodes' height. It takes 24 s while nobody waits for a payment. */
const PATIENCE_MS = 25_000;

/** Compares a page of a project's addresses with the chain now. Errors: `NOT_FOUND`, `NO_NODE`, `NODE_REFUSED`. */
export async function compareBalances(
  deps: Deps,
  actor: Actor,
  input: { projectId: string | undefined; after: number },
): Promise<ComparedBalancesView> {
  const { now, nodes } = deps;
  const { projectId, network, data } = await listBalances(deps, actor, input);
  const isNew = ({ chain }: (typeof data)[number]) => chain !== null && now() - Date.parse(chain.checkedAt) < NEW_MS;
  const addresses = data.filter((each) => !isNew(each)).map(({ address }) => address);
  const skipped = data.filter(isNew).map(({ address }) => address);
  if (addresses.length === 0) return { projectId, network, node: null, data: [], skipped };
  const { withNodes } = await nodes();
  const wanted = { addresses, patienceMs: PATIENCE_MS };
  const compared: ReconciledView = await withNodes(network, async (asking) => {
    return (await reconcileNow({ ...asking, onProgress: () => undefined }, actor, wanted)).view;
  });
  return { projectId, network, node: compared.node, data: compared.data, skipped };
}
