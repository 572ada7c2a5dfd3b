import type { FastifyRequest } from 'fastify';
import type { UnixMs } from '../../domain/time.ts';
import type { Actor } from '../../operator/actor.ts';
import type { DoctorView } from '../../operator/doctor/run-doctor.ts';
import type { AskDeps } from '../../operator/explain/explain.ts';
import type { OperationDeps } from '../../operator/operation.ts';
import type { ProjectView } from '../../operator/subjects/projects.ts';
import type { Session } from '../../operator/subjects/sessions.ts';
import type { SignedAction, SignInDeps, StepUpProof, StepUpRequest } from '../../operator/subjects/sign-in.ts';
import type { RunningProcess } from '../../operator/system/show-system.ts';
import type { SettingView } from '../../operator/system/views.ts';
import type { Html } from '../../web/html.ts';

/** Asks the person of a request again who it is, for an action that is shown. */
export type StepUp = {
  /** Whether the person has given a proof in the last five minutes. */
  isRecent: boolean;
  ask(action: SignedAction): Promise<StepUpRequest>;
  /** Whether the proof is of this person, for this action, and new. */
  take(action: SignedAction, proof: StepUpProof): Promise<boolean>;
};

/** A merchant as payers see it. `logoUrl`: a `data:` URL. */
type Example = Pick<ProjectView, 'network' | 'policy' | 'lifetimeMs'> & {
  brand: Pick<ProjectView, 'name' | 'supportContact' | 'returnUrl' | 'accent'>;
  logoUrl: string | null;
  now: UnixMs;
};

/** `publicUrl` is the payers' origin. */
export type ConsoleDeps = { publicUrl(): string } & OperationDeps & {
    /** The console's own origin, from which alone forms are taken: `https://console.example.com`. */
    consoleUrl(): string;
    /** The person behind a request; `null`: nobody is signed in. */
    findActor(request: FastifyRequest): Promise<Actor | null>;
    /** The session of a request; `null`: nobody is signed in, or the owner of a sandbox, who has none. */
    findSession(request: FastifyRequest): Promise<Session | null>;
    /** What links to people and their passkeys are made with. */
    people(): SignInDeps;
    /** `null`: the owner of a sandbox, who has nothing to prove it by. */
    stepUp(request: FastifyRequest): Promise<StepUp | null>;
    /** Calls when an invoice got another status, in whatever process; also when that may have been missed. */
    onChange(listener: () => void): void;
    /** What names the session of a request, such as its cookie: a form is only taken from the session that it was made for. */
    sessionOf(request: FastifyRequest): string;
    /** Signs forms; the processes of a console have it in common. Random for each process when absent. */
    formKey?: Uint8Array;
    /** A payer's page that nobody can pay by, or why there is none, as a document whose style carries the nonce. */
    renderExample(request: FastifyRequest, shown: Example | { problem: Html }): { html: string; nonce: string };
    process: RunningProcess;
    /** The variables of the environment of this process. */
    settings: readonly SettingView[];
    /** Looks at everything around this process. */
    examine(actor: Actor): Promise<DoctorView>;
    /** How the chain is asked of a transaction that the ledger does not know. Absent: it is not asked. */
    ask?: AskDeps;
  };
