import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Actor } from '../../operator/actor.ts';
import { type From, findSession, personActor, type Session } from '../../operator/people/session.ts';
import type { SignInDeps } from '../../operator/people/start-session.ts';
import type { Logger } from '../../runtime/log.ts';
import { clientOf } from '../../web/client-address.ts';
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
  return {
    find,
    /** The person behind a request. Who has the link that a sandbox prints is its owner. */
    findActor: async (request: FastifyRequest): Promise<Actor | null> => {
      const token = tokenOf(request);
      const from = fromOf(request);
      if (token !== null && sandboxToken !== undefined && isSame(token, sandboxToken)) return { ...SANDBOX, ...from };
      const session = await find(request);
      return session && personActor(session.person, from);
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
