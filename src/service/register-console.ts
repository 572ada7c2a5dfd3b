import { randomInt } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { renderExample } from '../checkout/page/example.ts';
import { registerConsole } from '../console/register.ts';
import { createSessions } from '../console/sign-in/sessions.ts';
import { addSignInRoutes } from '../console/sign-in/sign-in-routes.ts';
import type { Actor } from '../operator/actor.ts';
import type { DoctorView } from '../operator/doctor/run-doctor.ts';
import type { NodeAccess, OperationDeps } from '../operator/operation.ts';
import { createSignInLimits } from '../operator/people/sign-in-limits.ts';
import type { RunningProcess } from '../operator/system/show-system.ts';
import type { SettingView } from '../operator/system/views.ts';
import { deriveKey } from '../runtime/key-ring.ts';
import { INVOICES_CHANNEL } from '../store/ledger/checkout.ts';
import { createTokenBuckets } from '../web/token-bucket.ts';
import type { Context } from './context.ts';

type Options = {
  operations: OperationDeps;
  nodes: NodeAccess;
  consoleUrl(): string;
  process: RunningProcess;
  settings: readonly SettingView[];
  examine(actor: Actor): Promise<DoctorView>;
  sandboxToken?: string;
};

/** Registers the pages that operators open. They need the master key, under which stands what people sign in with. */
export function registerOperatorPages(
  app: FastifyInstance,
  { keyRing, publicUrl, certainNow, steadyNow, deadlineClock }: Context,
  { operations, nodes, consoleUrl, process, settings, examine, ...options }: Options,
): void {
  const { db, log, now, random, networks } = operations;
  if (keyRing === null) {
    log.warn(
      'the console has no pages without the master key: set QUITTANCE_MASTER_KEY as the other processes have it',
    );
    return;
  }
  const limits = createSignInLimits(createTokenBuckets);
  const people = () => ({ db, keyRing, consoleUrl: consoleUrl(), limits, now, certainNow, random });
  const deps = { ...options, people, consoleUrl, log };
  const sessions = createSessions(deps);
  addSignInRoutes(app, deps);
  registerConsole(app, {
    ...{ ...operations, publicUrl, steadyNow, deadlineClock, randomBelow: (n: number) => randomInt(n), consoleUrl },
    onChange: (listener) => db.listen(INVOICES_CHANNEL, listener),
    ...{ findActor: sessions.findActor, stepUp: sessions.stepUp, sessionOf: sessions.sessionOf },
    renderExample,
    ...{ findSession: sessions.find, people, process, settings, examine },
    ask: { ...nodes, networks, log },
    formKey: deriveKey(keyRing.current(), { purpose: 'quittance forms', salt: '' }),
  });
}
