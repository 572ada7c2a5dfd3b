import type { FastifyRequest } from 'fastify';
import type { Actor } from '../../operator/actor.ts';
import type { AskDeps } from '../../operator/explain/ask-chain.ts';
import type { InvoiceDeps } from '../../operator/invoices/list-invoices.ts';
import type { OperationDeps } from '../../operator/operation.ts';
import type { SignedAction, StepUpProof, StepUpRequest } from '../../operator/people/step-up.ts';

/** Asks the person of a request again who it is, for an action that is shown. */
export type StepUp = {
  ask(action: SignedAction): Promise<StepUpRequest>;
  /** Whether the proof is of this person, for this action, and new. */
  take(action: SignedAction, proof: StepUpProof): Promise<boolean>;
};

/** `publicUrl` is the payers' origin. */
export type ConsoleDeps = OperationDeps &
  InvoiceDeps & {
    /** A uniform integer in 0 … n−1. */
    randomBelow(n: number): number;
    /** The console's own origin, from which alone forms are taken: `https://console.example.com`. */
    consoleUrl(): string;
    /** The person behind a request; `null`: nobody is signed in. */
    findActor(request: FastifyRequest): Promise<Actor | null>;
    /** `null`: it need not prove anything, for it did in the last minutes, or is the owner of a sandbox. */
    stepUp(request: FastifyRequest): Promise<StepUp | null>;
    /** What names the session of a request, such as its cookie: a form is only taken from the session that it was made for. */
    sessionOf(request: FastifyRequest): string;
    /** Signs forms; the processes of a console have it in common. Random for each process when absent. */
    formKey?: Uint8Array;
    /** How the chain is asked of a transaction that the ledger does not know. Absent: it is not asked. */
    ask?: AskDeps;
  };
