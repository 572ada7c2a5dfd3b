import { createHash } from 'node:crypto';
import { encodeId } from '../../domain/ids.ts';
import { type UnixMs, unixMs } from '../../domain/time.ts';
import { findFactors, lockFactors } from '../../store/access/people.ts';
import { stepUpSession } from '../../store/access/sessions.ts';
import type { Sql } from '../../store/db/database.ts';
import type { ActionName } from '../actions.ts';
import type { Actor } from '../actor.ts';
import { recordActions } from '../record-actions.ts';
import { passkeyRequest, takePasskey, verifyPasskey } from './passkey-proof.ts';
import { type Session, steppedUpUntil } from './session.ts';
import { type SignInDeps, takeCode } from './start-session.ts';

/** What somebody is about to do: the use case, and the input as it is shown. What is seen is what is signed. */
export type SignedAction = { name: ActionName; input: string };

/** How a person can prove again who it is. */
export type StepUpRequest = { passkey: Awaited<ReturnType<typeof passkeyRequest>>; hasCode: boolean };

/** Asks a person to prove again who it is before an action. */
export async function requestStepUp(deps: SignInDeps, session: Session, action: SignedAction): Promise<StepUpRequest> {
  const { id } = session.person;
  const factors = await findFactors(deps.db, { id, login: null });
  return { passkey: await passkeyRequest(deps, id, purposeOf(session, action)), hasCode: factors?.totpSealed != null };
}

/** `code`: of an authenticator app, or a recovery code. */
export type StepUpProof = { passkey: unknown } | { code: string };

/**
 * Notes that the person of a session proved again who it is, which counts for five minutes. A passkey must have signed the challenge of this
 * action in this session. `actor`: that person. `null`: the proof is of somebody else, of another action, or was used.
 */
export async function stepUp(
  deps: SignInDeps,
  actor: Actor,
  { session, action, proof }: { session: Session; action: SignedAction; proof: StepUpProof },
): Promise<{ steppedUpUntil: UnixMs } | null> {
  const note = async (tx: Sql, by: string) => {
    if (!(await stepUpSession(tx, session.id, deps.now()))) return null;
    const subject = encodeId('ses', session.id);
    const detail = { for: action.name, input: createHash('sha256').update(action.input).digest('hex'), proof: by };
    await recordActions(tx, actor, deps.now(), [{ projectId: null, action: 'session.stepped-up', subject, detail }]);
    return { steppedUpUntil: steppedUpUntil({ steppedUpAt: deps.now() }, deps.now()) ?? unixMs(deps.now()) };
  };
  const { person } = session;
  if ('passkey' in proof) {
    const verified = await verifyPasskey(deps, purposeOf(session, action), proof.passkey);
    if (verified === null || verified.person.id !== person.id) return null;
    return deps.db.transaction(async (tx) => {
      const isTaken = (await lockFactors(tx, person.id)) !== null && (await takePasskey(tx, verified, deps.now()));
      return isTaken ? note(tx, 'passkey') : null;
    });
  }
  return deps.db.transaction(async (tx) => {
    const locked = await lockFactors(tx, person.id);
    const by = locked && (await takeCode(tx, deps, actor, { person: locked, code: proof.code }));
    return by === null ? null : note(tx, by);
  });
}

const purposeOf = ({ id }: Session, { name, input }: SignedAction) => ['step-up', id, name, input];
