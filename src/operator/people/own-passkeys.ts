import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { toIso } from '../../domain/time.ts';
import { findPasskeys, insertPasskey, type Passkey, removePasskeyRow } from '../../store/access/passkeys.ts';
import { lockFactors } from '../../store/access/people.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { FieldError } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { recordActions } from '../record-actions.ts';
import { notNew, notVerified, passkeyCreation, spend, verifyCreated } from './passkey-proof.ts';
import type { Session } from './session.ts';
import type { SignInDeps } from './start-session.ts';
import type { PasskeyListView, PasskeyView } from './views.ts';

/** The passkeys of whoever asks, the oldest first; at most 100. */
export async function listOwnPasskeys({ db }: Pick<SignInDeps, 'db'>, actor: Actor): Promise<PasskeyListView> {
  return { data: (await findPasskeys(db, personIdOf(actor))).map(toView) };
}

/** A person has a few: a telephone, a laptop, a security key in the safe. */
const MOST = 20;

const purposeOf = (personId: string) => ['passkey', personId];

/** What a browser is asked to make another passkey by; `null` where it cannot. */
export const requestPasskey = (deps: SignInDeps, { person }: Session) =>
  passkeyCreation(deps, person, purposeOf(person.id));

/** Adds a passkey to those of whoever asks. `name`: what it is called. Errors: `INVALID_ARGUMENT`. */
export async function addPasskey(
  deps: SignInDeps,
  actor: Actor,
  { passkey, name }: { passkey: unknown; name: string },
): Promise<PasskeyView> {
  const personId = personIdOf(actor);
  const problem = nameProblem(name.trim());
  if (problem !== null) throw new FieldError('name', problem);
  const created = await verifyCreated(deps, purposeOf(personId), passkey);
  if (created === null) throw notVerified();
  const { challenge, ...key } = created;
  const row = { ...key, name: name.trim(), createdAt: deps.now() };
  await deps.db.transaction(async (tx) => {
    await lockFactors(tx, personId);
    if ((await findPasskeys(tx, personId)).length >= MOST) {
      throw new AppError('CONFLICT', `you have ${MOST} passkeys: remove one first`);
    }
    if (!((await spend(tx, challenge)) && (await insertPasskey(tx, personId, row)))) throw notNew();
    await record(tx, deps, actor, { action: 'passkey.added', detail: { name: row.name } });
  });
  return toView({ ...row, lastUsedAt: null });
}

/** Removes a passkey of whoever asks, but not the last thing that it signs in with. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function removePasskey(
  deps: Pick<SignInDeps, 'db' | 'now'>,
  actor: Actor,
  { passkeyId }: { passkeyId: string },
): Promise<void> {
  const personId = personIdOf(actor);
  await deps.db.transaction(async (tx) => {
    // So that two at once do not remove the last two.
    const factors = await lockFactors(tx, personId);
    if (!(await removePasskeyRow(tx, Buffer.from(passkeyId, 'base64url'), personId, deps.now()))) {
      throw new AppError('NOT_FOUND', 'there is no such passkey of yours');
    }
    const rest = await findPasskeys(tx, personId);
    if (rest.length === 0 && factors?.passwordHash == null) {
      throw new AppError('CONFLICT', 'it is all that you sign in with: add another passkey first');
    }
    await record(tx, deps, actor, { action: 'passkey.removed', detail: { left: rest.length } });
  });
}

function record(
  tx: Sql,
  { now }: Pick<SignInDeps, 'now'>,
  actor: Actor,
  done: { action: 'passkey.added' | 'passkey.removed'; detail: object },
): Promise<void> {
  return recordActions(tx, actor, now(), [{ projectId: null, subject: encodeId('usr', personIdOf(actor)), ...done }]);
}

/** Only people have passkeys, not commands and keys. Errors: `NOT_FOUND`. */
function personIdOf({ kind, id }: Actor): string {
  if (kind === 'console' && id !== null) return id;
  throw new AppError('NOT_FOUND', 'passkeys are those of people of the console');
}

function toView({
  id,
  name,
  createdAt,
  lastUsedAt,
}: Passkey | Omit<Passkey, 'publicKey' | 'counter' | 'transports'>): PasskeyView {
  return {
    passkeyId: id.toString('base64url'),
    name,
    createdAt: toIso(createdAt),
    lastUsedAt: lastUsedAt && toIso(lastUsedAt),
  };
}
