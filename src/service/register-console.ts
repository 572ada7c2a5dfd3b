import { randomInt } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { registerConsole } from '../console/register.ts';
import { createSessions } from '../console/sign-in/sessions.ts';
import { addSignInRoutes } from '../console/sign-in/sign-in-routes.ts';
import type { NodeAccess } from '../operator/operation.ts';
import { createSignInLimits } from '../operator/people/sign-in-limits.ts';
import { deriveKey } from '../runtime/key-ring.ts';
import type { Database } from '../store/db/database.ts';
import { createTokenBuckets } from '../web/token-bucket.ts';
import type { Context } from './context.ts';

type Options = { db: Database; nodes: NodeAccess; consoleUrl(): string; sandboxToken?: string };

/** Registers the pages that operators open. They need the master key, under which stands what people sign in with. */
export function registerOperatorPages(
  app: FastifyInstance,
  { keyRing, log, now, random, publicUrl, networks }: Context,
  { db, nodes, consoleUrl, ...options }: Options,
): void {
  if (keyRing === null) {
    log.warn(
      'the console has no pages without the master key: set QUITTANCE_MASTER_KEY as the other processes have it',
    );
    return;
  }
  const limits = createSignInLimits(createTokenBuckets);
  const people = () => ({ db, keyRing, consoleUrl: consoleUrl(), limits, now, random });
  const deps = { ...options, people, consoleUrl, log };
  const sessions = createSessions(deps);
  addSignInRoutes(app, deps);
  registerConsole(app, {
    ...{ db, publicUrl, now, random, randomBelow: (n) => randomInt(n), log, consoleUrl },
    ...{ findActor: sessions.findActor, sessionOf: sessions.sessionOf },
    ask: { ...nodes, networks, log },
    formKey: deriveKey(keyRing.current(), { purpose: 'quittance forms', salt: '' }),
  });
}
