import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { applyAddressChange } from '../../payments/apply-address-change.ts';
import type { Actor } from '../actor.ts';
import type { OperationDeps } from '../operation.ts';
import { recordedActor } from '../record-actions.ts';
import { usdtContracts } from '../usdt-contracts.ts';
import { findRefusal } from './find-refusal.ts';
import { hasEnded, selectChange, viewChange } from './select-change.ts';
import type { ConfirmedChangeView } from './views.ts';

type Deps = Pick<OperationDeps, 'db' | 'now' | 'random'> & { config: Pick<OperationDeps['config'], 'networks'> };

/**
 * Adds the addresses of a change at once, by the word of another owner than who proposed it, or of who runs commands here. Errors:
 * `INVALID_ARGUMENT`, `NOT_FOUND`, `CONFLICT`.
 */
export async function confirmAddressChange(
  deps: Deps,
  actor: Actor,
  { changeId }: { changeId: string },
): Promise<ConfirmedChangeView> {
  const { db } = deps;
  const found = await selectChange(db, actor, changeId);
  if (found.state !== 'waiting') throw hasEnded(found);
  const refusal = await findRefusal(deps, actor, found);
  if (refusal !== null) throw new AppError('CONFLICT', `${encodeId('chg', found.id)} was not confirmed: ${refusal}`);
  const cause = { kind: 'confirmed', actor: recordedActor(actor) } as const;
  const outcome = await applyAddressChange({ ...deps, contracts: usdtContracts(deps.config) }, found.id, cause);
  const change = await selectChange(db, actor, changeId);
  if (outcome.kind === 'none') throw hasEnded(change);
  if (outcome.kind === 'failed') {
    throw new AppError(
      'CONFLICT',
      say`no address was added, and ${changeId} has ended: ${outcome.reason}. Where they are yours, propose them anew with "${{ command: 'address add' }}"`,
    );
  }
  return { change: viewChange(change, actor), added: outcome.added, passedOver: outcome.passedOver };
}
