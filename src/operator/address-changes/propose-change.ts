import { DAY_MS } from '../../domain/capacity.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import type { Policy } from '../../domain/policy.ts';
import { toIso, type UnixMs, unixMs } from '../../domain/time.ts';
import { settleChangeAlarm } from '../../payments/address-change-alarm.ts';
import type { Sql } from '../../store/db/database.ts';
import {
  type AddressChange,
  digestOfChange,
  findAddressChange,
  findWaitingChanges,
  insertAddressChange,
} from '../../store/ledger/address-changes.ts';
import type { Project } from '../../store/ledger/projects.ts';
import type { TronAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import type { Vouching } from '../operation.ts';
import { recordActions } from '../record-actions.ts';
import { viewChange } from './select-change.ts';
import type { AddressChangeView } from './views.ts';

/** How long a change waits for another owner, who need not be there. */
const WAIT_MS = DAY_MS;
/** A person looks through them. */
export const MAX_PROPOSED = 500;
const MAX_WAITING = 20;

/** Whether what an actor adds may have to wait, where the project has an address already. Whoever runs commands here has the database. */
export function mayWait({ kind }: Pick<Actor, 'kind'>, config: { sandbox: boolean }): boolean {
  return kind !== 'cli' && !config.sandbox;
}

/** Whether these addresses wait. Those that the manifest in force names were signed for this project by keys that no thief of a session has. */
export function mustWait(
  actor: Pick<Actor, 'kind'>,
  { config, addressGuard }: { config: { sandbox: boolean }; addressGuard: Pick<Vouching, 'vouchesFor'> },
  { project: { id: projectId, network }, addresses }: Pick<Proposed, 'addresses'> & { project: ProjectOf },
): boolean {
  if (!mayWait(actor, config)) return false;
  return !addresses.every((address) => addressGuard.vouchesFor({ network, projectId, address }));
}

type ProjectOf = Pick<Project, 'id' | 'network'>;
type Deps = { now(): UnixMs; random(bytes: number): Uint8Array };
type Proposed = {
  policy: Policy;
  addresses: readonly TronAddress[];
  derivation: AddressChange['derivation'];
};

/**
 * Lets addresses wait for another owner, or for a day, in a transaction that holds the project's lock. Raises the alarm that tells of them.
 * Errors: `INVALID_ARGUMENT`, `CONFLICT`.
 */
export async function proposeChange(
  tx: Sql,
  { now, random }: Deps,
  actor: Actor,
  { project, ...wanted }: Proposed & { project: ProjectOf },
): Promise<AddressChangeView> {
  const { kind, id: actorId } = actor;
  if (kind === 'cli' || kind === 'key' || actorId === null) throw new Error(`what ${actor.name} adds does not wait`);
  const { addresses, policy, derivation } = wanted;
  refuseTooMany(addresses.length);
  refuseWaiting(await findWaitingChanges(tx, project.id), addresses);
  const proposedAt = now();
  const id = uuidV7(proposedAt, random(10));
  const dueAt = unixMs(proposedAt + WAIT_MS);
  await insertAddressChange(tx, {
    ...{ id, projectId: project.id, network: project.network, policy, addresses, derivation },
    ...{ actorKind: kind, actorId, actedBy: actor.name, origin: actor.origin, proposedAt, dueAt },
  });
  await settleChangeAlarm(tx, project);
  const change = await findAddressChange(tx, id);
  if (change === null) throw new Error(`${encodeId('chg', id)} vanished; changes are never deleted`);
  const detail = { change: encodeId('chg', id), policy, dueAt: toIso(dueAt), digest: digestOfChange(change) };
  const done = addresses.map((subject, position) => {
    const index = derivation?.indexes[position];
    return {
      ...({ projectId: project.id, action: 'address.proposed', subject } as const),
      detail: index === undefined ? detail : { ...detail, index },
    };
  });
  await recordActions(tx, actor, proposedAt, done);
  return viewChange(change, actor);
}

function refuseTooMany(count: number): void {
  if (count <= MAX_PROPOSED) return;
  throw new AppError(
    'INVALID_ARGUMENT',
    `${count} addresses were given, and ${MAX_PROPOSED} can wait at once for somebody to look at them: give fewer, or add them by the command on the machine`,
  );
}

function refuseWaiting(waiting: readonly AddressChange[], addresses: readonly TronAddress[]): void {
  if (waiting.length >= MAX_WAITING) {
    throw new AppError(
      'CONFLICT',
      say`no address was added: ${waiting.length} changes of this project wait already. Confirm or withdraw them: "${{ command: 'address pending' }}"`,
    );
  }
  const wanted = new Set<string>(addresses);
  for (const { id, addresses: others } of waiting) {
    const twice = others.find((address) => wanted.has(address));
    if (twice === undefined) continue;
    throw new AppError(
      'CONFLICT',
      say`no address was added: ${twice} waits in ${encodeId('chg', id)} already. Confirm or withdraw that one: "${{ command: 'address pending' }}"`,
    );
  }
}
