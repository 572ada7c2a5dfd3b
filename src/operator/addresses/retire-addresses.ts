import { encodeId } from '../../domain/ids.ts';
import { say, type Text } from '../../domain/message.ts';
import type { Policy } from '../../domain/policy.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { countAddresses, findAddresses, markInUse, markRetired } from '../../store/ledger/addresses.ts';
import { lockProject } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import { type Candidate, refusedAddresses } from './read-candidates.ts';
import type { SwitchedAddressesView } from './views.ts';

type Deps = { db: Database; now(): UnixMs };
type Input = { projectId: string | undefined; addresses: readonly Candidate[]; note: string | null };
/** `otherPolicy`: of an address that was changed, where it is not the project's. */
type Switched = { view: SwitchedAddressesView; projectPolicy: Policy; otherPolicy: Policy | null };

/**
 * Takes addresses out of use, all of them or none: they get no new invoices and are watched for ever. May be repeated. Errors:
 * `NOT_FOUND`, `INVALID_ARGUMENT`.
 */
export function retireAddresses(deps: Deps, actor: Actor, input: Input): Promise<Switched> {
  return switchAddresses(deps, actor, input, 'retired');
}

/** Takes addresses into use again that are retired, or that Tether froze and let go, all of them or none. May be repeated. Errors: the same, and `CONFLICT`. */
export function activateAddresses(deps: Deps, actor: Actor, input: Input): Promise<Switched> {
  return switchAddresses(deps, actor, input, 'active');
}

async function switchAddresses(
  { db, now }: Deps,
  actor: Actor,
  { addresses, note, ...input }: Input,
  status: 'retired' | 'active',
): Promise<Switched> {
  const { id: projectId } = await selectProject(db, actor, input.projectId);
  return db.transaction(async (tx) => {
    const { network, policy: projectPolicy } = await lockProject(tx, projectId);
    const accounts = addresses.map(({ account }) => account);
    const own = (await findAddresses(tx, network, accounts)).filter((each) => each.projectId === projectId);
    const known = new Set(own.map(({ address }) => address));
    refuse(
      addresses.filter(({ address }) => !known.has(address)),
      say`is not in this project: "${{ command: 'address list' }}" shows those that are`,
      'NOT_FOUND',
    );
    if (status === 'active') {
      refuse(
        own.filter(({ barredAt }) => barredAt !== null),
        'was in use before a backup was restored: payers may hold amounts of it that are not known here, so it never gets a new invoice. Add another one (docs/backup.md)',
        'CONFLICT',
      );
      refuse(
        own.filter(({ freezeState }) => freezeState === 'seen' || freezeState === 'frozen'),
        'is frozen by Tether: what it receives cannot be sent on. It can be taken into use again when Tether lets it go',
        'CONFLICT',
      );
    }
    const actedAt = now();
    const ids = own.map(({ id }) => id);
    const marked = status === 'retired' ? await markRetired(tx, ids, actedAt) : await markInUse(tx, ids);
    const [changed, unchanged] = [own.filter(({ id }) => marked.has(id)), own.filter(({ id }) => !marked.has(id))];
    const action = status === 'retired' ? 'address.retired' : 'address.activated';
    const detail = note === null ? {} : { note };
    const activeAddresses = (await countAddresses(tx, projectId)).active;
    const done = changed.map(({ address }) => ({ projectId, action, subject: address, detail }) as const);
    await recordActions(tx, actor, actedAt, done);
    const view = {
      ...{ projectId: encodeId('prj', projectId), status },
      changed: changed.map(({ address }) => address),
      unchanged: unchanged.map(({ address }) => address),
      activeAddresses,
    };
    return { view, projectPolicy, otherPolicy: changed.find(({ policy }) => policy !== projectPolicy)?.policy ?? null };
  });
}

function refuse(addresses: readonly { address: string }[], reason: Text, code: 'NOT_FOUND' | 'CONFLICT'): void {
  if (addresses.length === 0) return;
  const problems = addresses.map(({ address }) => ({ subject: address, message: say`${address} ${reason}` }));
  throw refusedAddresses('no address was changed', problems, code);
}
