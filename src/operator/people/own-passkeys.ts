import { AppError } from '../../domain/errors.ts';
import { toIso } from '../../domain/time.ts';
import { findPasskeys, insertPasskey, type Passkey, removePasskeyRow } from '../../store/access/passkeys.ts';
import { lockFactors, lockPerson } from '../../store/access/people.ts';
import { FieldError } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { passkeyCreation, spend, verifyCreated } from './passkey-proof.ts';
import { type From, recordOfPerson, type Session } from './session.ts';
import type { SignInDeps } from './start-session.ts';
import type { PasskeyListView, PasskeyView } from './views.ts';

/** The passkeys of whoever asks, the oldest first; at most 100. */
export async function listOwnPasskeys({ db }: Pick<SignInDeps, 'db'>, { person }: Session): Promise<PasskeyListView> {
  return { data: (await findPasskeys(db, person.id)).map(toView) };
}

/** A person has a few: a telephone, a laptop, a security key in the safe. */
const MOST = 20;

const purposeOf = ({ id }: Session) => ['passkey', id];

/** What a browser is asked to make another passkey by; `null` where it cannot. */
export const requestPasskey = (deps: SignInDeps, session: Session) =>
  passkeyCreation(deps, session.person, purposeOf(session));

/** Adds a passkey to those of a session's person. Errors: `INVALID_ARGUMENT`. */
export async function addPasskey(
  deps: SignInDeps,
  from: From,
  session: Session,
  { passkey, name }: { passkey: unknown; name: string },
): Promise<PasskeyView> {
  const problem = nameProblem(name.trim());
  if (problem !== null) throw new FieldError('name', problem);
  const created = await verifyCreated(deps, purposeOf(session), passkey);
  if (created === null)
    throw new FieldError('passkey', 'was not made for this page, or without a look at who made it: try again');
  const { challenge, ...key } = created;
  const row = { ...key, name: name.trim(), createdAt: deps.now() };
  await deps.db.transaction(async (tx) => {
    await lockPerson(tx, session.person.id);
    if ((await findPasskeys(tx, session.person.id)).length >= MOST)
      throw new FieldError('passkey', `would be one of more than ${MOST}: remove one first`);
    const isNew = (await spend(tx, challenge)) && (await insertPasskey(tx, session.person.id, row));
    if (!isNew) throw new FieldError('passkey', 'is in use already: try again with another one');
    await recordOfPerson(tx, session.person, from, deps.now(), { action: 'passkey.added', detail: { name: row.name } });
  });
  return toView({ ...row, lastUsedAt: null });
}

/** Removes a passkey of a session's person, but not the last thing that it signs in with. Errors: `NOT_FOUND`, `CONFLICT`. */
export async function removePasskey(
  { db, now }: Pick<SignInDeps, 'db' | 'now'>,
  from: From,
  session: Session,
  { passkeyId }: { passkeyId: string },
): Promise<void> {
  const { person } = session;
  await db.transaction(async (tx) => {
    // So that two at once do not remove the last two.
    const factors = await lockFactors(tx, person.id);
    if (!(await removePasskeyRow(tx, Buffer.from(passkeyId, 'base64url'), person.id, now()))) {
      throw new AppError('NOT_FOUND', 'there is no such passkey of yours');
    }
    const rest = await findPasskeys(tx, person.id);
    if (rest.length === 0 && factors?.passwordHash == null) {
      throw new AppError('CONFLICT', 'it is all that you sign in with: add another passkey first');
    }
    await recordOfPerson(tx, person, from, now(), { action: 'passkey.removed', detail: { left: rest.length } });
  });
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
