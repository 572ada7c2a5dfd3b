import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { AppError } from '../../domain/errors.ts';
import type { Actor } from '../../operator/actor.ts';
import { type From, findSession, personActor, type Session } from '../../operator/subjects/sessions.ts';
import { requestStepUp, type SignInDeps, stepUp } from '../../operator/subjects/sign-in.ts';
import type { Logger } from '../../runtime/log.ts';
import { clientOf } from '../../web/client-address.ts';
import type { StepUp } from '../page/console-deps.ts';
import { readSessionToken } from './session-cookie.ts';

export type SignInRouteDeps = {
  /** The console's own origin is known when it listens. */
  people(): SignInDeps;
  consoleUrl(): string;
  log: Logger;
  /** In the link that a sandbox prints: whoever has it is the owner. */
  sandboxToken?: string;
};

type Deps = Pick<SignInRouteDeps, 'people' | 'consoleUrl' | 'sandboxToken'>;

/** What of a request tells who asks. */
export function createSessions({ people, consoleUrl, sandboxToken }: Deps) {
  const tokenOf = (request: FastifyRequest) => readSessionToken(request, consoleUrl());
  const find = async (request: FastifyRequest): Promise<Session | null> => {
    const token = tokenOf(request);
    return token === null ? null : findSession(people(), token);
  };
  const isSandbox = (token: string | null) =>
    token !== null && sandboxToken !== undefined && isSame(token, sandboxToken);
  return {
    find,
    /** The person behind a request. Who has the link that a sandbox prints is its owner. */
    findActor: async (request: FastifyRequest): Promise<Actor | null> => {
      const token = tokenOf(request);
      const from = fromOf(request);
      if (isSandbox(token)) return { ...SANDBOX, ...from };
      const session = await find(request);
      return session && personActor(session.person, from);
    },
    /** How the person behind a request proves again who it is; `null`: the owner of a sandbox has nothing to prove it by. */
    stepUp: async (request: FastifyRequest): Promise<StepUp | null> => {
      if (isSandbox(tokenOf(request))) return null;
      const session = await find(request);
      if (session === null) throw new AppError('USAGE', 'your session has ended: sign in again');
      const actor = personActor(session.person, fromOf(request));
      return {
        isRecent: session.steppedUpUntil !== null,
        ask: (action) => requestStepUp(people(), session, action),
        take: async (action, proof) => (await stepUp(people(), actor, { session, action, proof })) !== null,
      };
    },
    /** What names the session: nobody sees it but the browser and this process. */
    sessionOf: (request: FastifyRequest): string => tokenOf(request) ?? '',
  };
}

const SANDBOX = { kind: 'console', name: 'sandbox', role: 'owner', id: null, projects: null } as const;

export function fromOf(request: FastifyRequest): From & { requestId: string } {
  const { ip, network } = clientOf(request);
  return { origin: ip, network, userAgent: request.headers['user-agent'] ?? null, requestId: request.id };
}

export function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
