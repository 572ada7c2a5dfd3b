import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import type { UnixMs } from '../../domain/time.ts';
import { findInvitation, insertRecoveryCodes, takeInvitation } from '../../store/access/invitations.ts';
import { insertPasskey } from '../../store/access/passkeys.ts';
import { lockFactors, type Person, personOf, storePassword } from '../../store/access/people.ts';
import type { Sql } from '../../store/db/database.ts';
import { FieldError } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { recordActions } from '../record-actions.ts';
import { hashToken } from './invite-person.ts';
import { notNew, notVerified, passkeyCreation, spend, verifyCreated } from './passkey-proof.ts';
import { hashPassword } from './password.ts';
import { passwordProblem } from './password-problem.ts';
import { createRecoveryCodes, recoveryCodeHash } from './recovery-codes.ts';
import { type From, openSession, personActor, type StartedSession } from './session.ts';
import { TooBusy } from './sign-in-limits.ts';
import type { SignInDeps } from './start-session.ts';
import { totpLink, totpStepOf } from './totp.ts';
import { sealTotp, totpSecretsOf } from './totp-secret.ts';

/** What the page of an invitation shows. `passkey` is `null` where browsers know none: at an IP address. */
export type OpenInvitation = {
  person: Pick<Person, 'login' | 'name' | 'role'>;
  kind: 'invite' | 'reset';
  expiresAt: UnixMs;
  passkey: Awaited<ReturnType<typeof passkeyCreation>>;
  totp: { secret: string; uri: string };
};

/** Looks at an invitation and takes nothing from it, so that what previews links in chats does no harm. `null`: it has ended, or there is none. */
export async function openInvitation(deps: SignInDeps, token: string): Promise<OpenInvitation | null> {
  const found = await findInvitation(deps.db, hashToken(token), deps.now());
  if (found === null) return null;
  const { person, kind, expiresAt } = found;
  const [secret = Buffer.alloc(0)] = totpSecretsOf(deps.keyRing, token);
  return {
    ...{ person, kind, expiresAt },
    passkey: await passkeyCreation(deps, person, purposeOf(token)),
    totp: totpLink(secret, { login: person.login, issuer: `Quittance ${new URL(deps.consoleUrl).host}` }),
  };
}

/** `name`: what the person calls the passkey. `code`: of the app that has read the secret of this invitation. */
export type Redemption = { passkey: unknown; name: string } | { password: string; code: string };

/** `recoveryCodes`: shown this one time; none beside a passkey. */
export type Redeemed = StartedSession & { recoveryCodes: string[] };

/**
 * Takes an invitation up: the person has from now on what it signs in with, and is signed in. Errors: `NOT_FOUND` (the invitation has ended),
 * `INVALID_ARGUMENT` (`passkey`, `name`, `password` or `code`).
 */
export async function redeemInvitation(
  deps: SignInDeps,
  from: From,
  token: string,
  proof: Redemption,
): Promise<Redeemed> {
  const { db, now } = deps;
  const found = await findInvitation(db, hashToken(token), now());
  if (found === null) throw ended();
  const { person, kind } = found;
  const factor =
    'passkey' in proof ? await readPasskey(deps, token, proof) : await readPassword(deps, person, token, proof);
  return db.transaction(async (tx) => {
    // Locked first, so that of two at once one waits here, and then finds the invitation taken.
    const factors = await lockFactors(tx, person.id);
    if (factors === null || !(await takeInvitation(tx, hashToken(token), now()))) throw ended();
    const locked = personOf(factors);
    const recoveryCodes = await factor.store(tx, locked);
    const started = await openSession(tx, deps, { person: locked, from, proof: factor.proof });
    const [subject, detail] = [encodeId('usr', locked.id), { kind, factor: factor.proof }];
    await recordActions(tx, personActor(locked, from), now(), [
      { projectId: null, action: 'user.joined', subject, detail },
    ]);
    return { ...started, recoveryCodes };
  });
}

const ended = () =>
  new AppError(
    'NOT_FOUND',
    'this invitation has ended: it was taken up, is older than 15 minutes, or another one took its place. Ask for a new link',
  );

const purposeOf = (token: string) => ['invitation', hashToken(token).toString('hex')];

async function readPasskey(deps: SignInDeps, token: string, { passkey, name }: { passkey: unknown; name: string }) {
  const calledProblem = nameProblem(name.trim());
  if (calledProblem !== null) throw new FieldError('name', calledProblem);
  const created = await verifyCreated(deps, purposeOf(token), passkey);
  if (created === null) throw notVerified();
  const store = async (tx: Sql, { id: personId }: Person) => {
    const { challenge, ...key } = created;
    const isNew =
      (await spend(tx, challenge)) &&
      (await insertPasskey(tx, personId, { ...key, name: name.trim(), createdAt: deps.now() }));
    if (!isNew) throw notNew();
    return [];
  };
  return { proof: 'passkey' as const, store };
}

async function readPassword(
  { keyRing, now, random, limits }: SignInDeps,
  person: Person,
  token: string,
  { password, code }: { password: string; code: string },
) {
  const problem = passwordProblem(password, person.login);
  if (problem !== null) throw new FieldError('password', problem);
  const proved = totpSecretsOf(keyRing, token).flatMap((secret) => {
    const step = totpStepOf(secret, code, now());
    return step === null ? [] : [{ secret, step }];
  });
  const [app] = proved;
  if (app === undefined)
    throw new FieldError(
      'code',
      'is not the one that your app shows now: look whether the clock of the device is right',
    );
  const hash = await hashPassword(password, limits.derive(true)).catch(refuseBusy);
  const store = async (tx: Sql, joined: Person) => {
    const totp = await sealTotp(tx, keyRing, joined.id, app.secret);
    await storePassword(tx, joined, { hash, totp, step: app.step });
    const codes = createRecoveryCodes(random);
    await insertRecoveryCodes(
      tx,
      joined.id,
      codes.flatMap((each) => recoveryCodeHash(each) ?? []),
      now(),
    );
    return codes;
  };
  return { proof: 'totp' as const, store };
}

function refuseBusy(error: unknown): never {
  if (!(error instanceof TooBusy)) throw error;
  throw new FieldError(
    'password',
    'cannot be taken just now, because too many sign in at once: try again in a few seconds',
  );
}
