import type { FastifyRequest } from 'fastify';
import type { UnixMs } from '../domain/time.ts';
import type { Actor } from '../operator/actor.ts';
import type { AskDeps } from '../operator/explain/ask-chain.ts';
import type { InvoiceDeps } from '../operator/invoices/list-invoices.ts';
import type { Logger } from '../runtime/log.ts';

/** `publicUrl` is the payers' origin. */
export type ConsoleDeps = InvoiceDeps & {
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  /** A uniform integer in 0 … n−1. */
  randomBelow(n: number): number;
  log: Logger;
  /** The console's own origin, from which alone forms are taken: `https://console.example.com`. */
  consoleUrl(): string;
  /** The person behind a request; `null`: nobody is signed in. */
  findActor(request: FastifyRequest): Promise<Actor | null>;
  /** What names the session of a request, such as its cookie: a form is only taken from the session that it was made for. */
  sessionOf(request: FastifyRequest): string;
  /** Signs forms; the processes of a console have it in common. Random for each process when absent. */
  formKey?: Uint8Array;
  /** How the chain is asked of a transaction that the ledger does not know. Absent: it is not asked. */
  ask?: AskDeps;
};
