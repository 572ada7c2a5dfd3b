import type { FastifyRequest } from 'fastify';
import type { UnixMs } from '../../../core/domain/time.ts';
import type { Actor } from '../../operator/actor.ts';
import type { DoctorView } from '../../operator/doctor/run-doctor.ts';
import type { AskDeps } from '../../operator/explain/explain-transaction.ts';
import type { OperationDeps } from '../../operator/operation.ts';
import type { ProjectView } from '../../operator/subjects/projects.ts';
import type { Session } from '../../operator/subjects/sessions.ts';
import type { SignedAction, SignInDeps, StepUpProof, StepUpRequest } from '../../operator/subjects/sign-in.ts';
import type { RunningProcess, SettingView } from '../../operator/system/show-system.ts';
import type { Html } from '../../web/html.ts';

/** Asks the person who sent a request to prove their identity again, for an action that is shown. */
export type StepUp = {
  /** Whether the person has given a proof in the last five minutes. */
  isRecent: boolean;
  ask(action: SignedAction): Promise<StepUpRequest>;
  /** Whether the proof is from this person and for this action, and hasn't been used before. */
  take(action: SignedAction, proof: StepUpProof): Promise<boolean>;
};

/** A merchant as payers see it. `logoUrl` is a `data:` URL. */
type Example = Pick<ProjectView, 'network' | 'policy' | 'lifetimeMs'> & {
  brand: Pick<ProjectView, 'name' | 'supportContact' | 'returnUrl' | 'accent'>;
  logoUrl: string | null;
  now: UnixMs;
};

/** `publicUrl` is the payment pages' origin. */
export type ConsoleDeps = { publicUrl(): string } & OperationDeps & {
    /** The console's own origin, such as `https://console.example.com`. Forms are accepted only from this origin. */
    consoleUrl(): string;
    /** Returns the person behind a request; `null` if not signed in. */
    findActor(request: FastifyRequest): Promise<Actor | null>;
    /** Returns the session of a request; `null` if not signed in, or for a sandbox's owner, who has no session. */
    findSession(request: FastifyRequest): Promise<Session | null>;
    /** Creates the links and passkeys of people. */
    people(): SignInDeps;
    /** Returns `null` for a sandbox's owner, who has no way to prove their identity. */
    stepUp(request: FastifyRequest): Promise<StepUp | null>;
    /** Calls the listener when any process has changed an invoice's status, and when such a change may have been missed. */
    onChange(listener: () => void): void;
    /**
     * Returns the value that identifies a request's session, such as its cookie. A form is accepted only from the session that it was
     * created for.
     */
    sessionOf(request: FastifyRequest): string;
    /** Signs forms; all of a console's processes share it. If absent, it's random for each process. */
    formKey?: Uint8Array;
    /** Renders a payment page that can't be paid, or the reason why there is none, as a document whose style carries the nonce. */
    renderExample(request: FastifyRequest, shown: Example | { problem: Html }): { html: string; nonce: string };
    process: RunningProcess;
    /** This process's environment variables. */
    settings: readonly SettingView[];
    /** Checks everything around this process. */
    examine(actor: Actor): Promise<DoctorView>;
    /** Queries the chain about transactions that the ledger doesn't know. If absent, the chain isn't queried. */
    ask?: AskDeps;
  };
