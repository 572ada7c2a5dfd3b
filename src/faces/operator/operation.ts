import type { AccountHex } from '@quittance/tron/address';
import type { NodePool } from '../../core/chain/nodes/node-pool.ts';
import type { ReadDeps } from '../../core/chain/verify/read-block.ts';
import type { GeneralAnswer } from '../../core/domain/lookup/lookup.ts';
import type { Text } from '../../core/domain/message.ts';
import type { Network } from '../../core/domain/network.ts';
import type { UnixMs } from '../../core/domain/time.ts';
import type { DeadlineClock } from '../../core/payments/clocks.ts';
import type { AddressGuard } from '../../core/payments/manifest/address-guard.ts';
import type { Recording } from '../../core/payments/watching.ts';
import type { Logger } from '../../core/runtime/log.ts';
import type { KeySettings } from '../../core/runtime/open-key-ring.ts';
import type { Static, TSchema } from '../../core/runtime/type.ts';
import type { Database } from '../../core/store/db/database.ts';
import type { ActionName } from './actions.ts';
import type { Actor } from './actor.ts';
import { authorize } from './authorize.ts';
import type { Printed } from './command-words.ts';

/** For use cases that query a network's nodes. */
export type ReadSolidDeps = ReadDeps & {
  db: Database;
  pool: NodePool;
  agreement: number;
  /** How long to keep trying each part of the range while nodes refuse requests, return wrong data or disagree. */
  patienceMs: number;
};

/** For use cases that also record their actions. */
export type NodeDeps = ReadSolidDeps & Recording;

/** Everything that operations may depend on. Each operation declares the part that it needs. */
export type OperationDeps = {
  db: Database;
  now(): UnixMs;
  random(bytes: number): Uint8Array;
  config: KeySettings & {
    sandbox: boolean;
    webhooks: { localTargets: boolean; retentionDays: number };
    networks: Partial<Record<Network, { usdt: AccountHex }>>;
  };
  /**
   * The console's own origin, or `null` if none is configured. It's a function because a process with a console knows its origin only after
   * it has started listening.
   */
  consoleUrl: string | null | (() => string);
  /** Receives warnings that aren't part of the result, such as one about a key file that other users can read. */
  note(text: string): void;
  log: Logger;
  /** The networks whose nodes this process can query. */
  networks: readonly Network[];
  /** Loads the code that queries nodes. It isn't loaded at startup, because most operations don't need it. */
  nodes(): Promise<NodeAccess>;
  /** Tells which addresses are signed. */
  addressGuard: Vouching;
  /** Returns the service's public URL. A sandbox's URL is known only while the sandbox is running. */
  publicUrl(): string | Promise<string>;
  /** Returns a uniformly distributed integer from 0 to `n` − 1. */
  randomBelow(n: number): number;
  /** The clock that decides when invoices expire. */
  deadlineClock?: DeadlineClock | (() => Promise<DeadlineClock>);
};

/** Checks addresses against the manifest in force. */
export type Vouching = Pick<AddressGuard, 'vouchesFor' | 'isGuarded'>;

/** Commands that use this add addresses without waiting for a signature, and their lists don't show which addresses are signed. */
export const NO_MANIFEST: Vouching = { vouchesFor: () => false, isGuarded: () => false };

export type NodeAccess = {
  /** Runs `work` with a network's nodes. Throws `SANDBOX_NOT_RUNNING`. */
  withNodes<Output>(network: Network, work: (nodes: NodeDeps) => Promise<Output>): Promise<Output>;
  /** Describes the general answer for a payment with the wording of the payment page. */
  describeForPayer(answer: GeneralAnswer): string;
};

/** The input as the API and the command line pass it, where an optional field may also be `undefined`. */
export type Given<Input> = {
  [Name in keyof Input]: object extends Pick<Input, Name> ? Input[Name] | undefined : Input[Name];
};

/**
 * A use case that can run only on this machine, with its name in `ACTIONS`; `operations.test.ts` gives the reason. `read` finds mistakes without
 * using the database. `view` turns an outcome, which may hold more details for people, into the form for programs.
 */
export type LocalOperation<
  Input extends TSchema = TSchema,
  Wanted = unknown,
  Outcome = unknown,
  Deps = OperationDeps,
> = {
  action: ActionName;
  input: Input;
  read(given: Given<Static<Input>>, now: UnixMs): Wanted;
  run(deps: Deps, actor: Actor, wanted: Wanted): Promise<Outcome>;
  view(outcome: Outcome): object;
  /**
   * The command that runs it, its help text, and its output for people. The input's fields declare the options. `isSecretTyped` is true if
   * a secret was typed on the command line.
   */
  command?: string;
  does?: Text;
  print?(outcome: Outcome, typed: { isSecretTyped: boolean }): Printed;
  /**
   * Adds `--by`, which gives the person's name for the audit log. `before` is the field whose option follows it in the help; without
   * `before`, it comes last.
   */
  by?: { help: string; before?: string };
  /**
   * Questions that the command asks a person at the terminal about missing fields. A question with `after` is asked only if the person
   * answered the question for that other field.
   */
  asks?: readonly { member: string; question: string; after?: string }[];
  /** The message to print if no option was given, for a command that then does nothing. */
  nothing?: Text;
  /** Set if the command creates the database when it doesn't exist yet. */
  mayCreate?: boolean;
  /** Set if the command needs the tables' owner, because it does something that the service may not. */
  asOwner?: boolean;
  /** Set if the outcome is `ExportedRows`, which the command writes in the input's `format` to its `output`. */
  isExport?: boolean;
};

/**
 * A use case that can run locally or on a server. Its entry in the OpenAPI document and the remote call are derived from it. `route` is its
 * `method` and its `path`, which is relative to `/admin/v1`. The parameters in the path, such as `:keyId`, are fields of the input.
 */
export type Operation<
  Input extends TSchema = TSchema,
  Wanted = unknown,
  Outcome = unknown,
  Deps = OperationDeps,
> = LocalOperation<Input, Wanted, Outcome, Deps> & {
  summary: string;
  route: `${Method} /${string}`;
  method: Method;
  path: string;
  output: TSchema;
};

type Method = 'GET' | 'POST' | 'PATCH';
type Defaults = 'read' | 'view';
type Declared<Of extends Record<Defaults, unknown>, Input extends TSchema, Wanted> = Omit<
  Of,
  Defaults | 'method' | 'path'
> &
  Partial<Pick<Of, Defaults>> &
  (Given<Static<Input>> extends Wanted ? unknown : { read: unknown });

/**
 * Declares an operation. By default, the use case gets its input unchanged, and its view is the outcome of its use case, or the `view` field of
 * that outcome. The help of its command says the same as its summary.
 */
export function operation<
  Input extends TSchema,
  Outcome extends object,
  Wanted = Given<Static<Input>>,
  Deps = OperationDeps,
>(declared: Declared<Operation<Input, Wanted, Outcome, Deps>, Input, Wanted>): Operation<Input, Wanted, Outcome, Deps> {
  const { summary, route } = declared;
  const [method, path = ''] = route.split(' ') as [Method, string?];
  return { ...DEFAULTS, does: summary.charAt(0).toLowerCase() + summary.slice(1), ...declared, method, path };
}

/** Declares an operation without a route. */
export function localOperation<
  Input extends TSchema,
  Outcome extends object,
  Wanted = Given<Static<Input>>,
  Deps = OperationDeps,
>(
  declared: Declared<LocalOperation<Input, Wanted, Outcome, Deps>, Input, Wanted>,
): LocalOperation<Input, Wanted, Outcome, Deps> {
  return { ...DEFAULTS, ...declared };
}

const DEFAULTS = { read: (given: unknown) => given as never, view: viewOf };

function viewOf(outcome: object): object {
  return 'view' in outcome ? (outcome.view as object) : outcome;
}

/** Runs an operation if the actor is allowed to. Throws `FORBIDDEN` or an error of the operation. */
export async function perform<Wanted, Outcome>(
  { action, run }: Pick<LocalOperation<TSchema, Wanted, Outcome>, 'action' | 'run'>,
  deps: OperationDeps,
  actor: Actor,
  wanted: Wanted,
): Promise<Outcome> {
  authorize(actor, action);
  return run(deps, actor, wanted);
}
