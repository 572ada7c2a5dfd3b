import { createHash } from 'node:crypto';
import type { DeadlineClock } from '../../domain/clocks.ts';
import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { formatAmount, type MicroUsdt } from '../../domain/money.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { createDatabaseClock } from '../../payments/clocks.ts';
import { type Created, createInvoice } from '../../payments/create-invoice.ts';
import { createWatchedNetworks } from '../../payments/watched-networks.ts';
import { systemClock } from '../../runtime/clock.ts';
import { insertApiKey } from '../../store/access/api-keys.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { readDatabaseClock } from '../doctor/environment-checks.ts';
import { clip } from '../input/clip.ts';
import { FieldError } from '../input/field-error.ts';
import { spotSecret } from '../input/spot-secret.ts';
import { recordActions } from '../record-actions.ts';
import { selectProject } from '../select-project.ts';
import { findDeskInvoice } from './invoice-desk.ts';
import { type InvoiceDeps, viewInvoice } from './list-invoices.ts';
import type { NewInvoiceView } from './views.ts';

type Deps = InvoiceDeps & {
  networks: readonly Network[];
  now(): UnixMs;
  steadyNow?(): UnixMs;
  deadlineClock?: DeadlineClock;
  random(bytes: number): Uint8Array;
  randomBelow(n: number): number;
};
type Input = { externalId: string; requestedMicro: MicroUsdt; note: string };

/** Of a project's own key for them. */
export const HAND_KEY_NAME = 'invoices made by hand';
const MAX_EXTERNAL_ID = 200;

/** Errors: `INVALID_ARGUMENT`. */
export function readExternalId(field: string, text: string): string {
  const { length } = [...text];
  if (spotSecret(text) !== null) throw new FieldError(field, 'looks like a secret, and payers may read it');
  if (length < 1 || length > MAX_EXTERNAL_ID) {
    throw new FieldError(field, `has ${length} characters: give it 1 to ${MAX_EXTERNAL_ID}`);
  }
  if (text.includes('\0') || !text.isWellFormed()) throw new FieldError(field, 'holds a character that cannot be kept');
  return text;
}

/**
 * Makes an invoice as the API does, in one transaction with the record of who made it. Its key is one of the project's own, of which nobody
 * has the secret: where that was revoked, none can be made. The limits of unpaid invoices bound what strangers start, and not this.
 * `idempotencyKey`: a repeat gives the same invoice. Errors: `NOT_FOUND`, `CONFLICT`.
 */
export async function createInvoiceByHand(
  deps: Deps,
  actor: Actor,
  { projectId, idempotencyKey, note, ...wanted }: Input & { projectId: string | undefined; idempotencyKey: string },
): Promise<NewInvoiceView> {
  const project = await selectProject(deps.db, actor, projectId);
  const { db, now, publicUrl, networks } = deps;
  const why = await createWatchedNetworks({ db, networks }).whyNot(project.network);
  if (why !== null) {
    const variable = `QUITTANCE_${project.network.toUpperCase()}_NODES`;
    const reason =
      why === 'not-set-up'
        ? `no watcher of ${project.network} has ever run. Set ${variable}, and start a watcher`
        : say`no node of ${project.network} has shown a block yet. Check ${variable}: ${{ command: 'doctor' }} says what is wrong`;
    throw new AppError('CONFLICT', say`no invoice was created, because a payment would not be seen: ${reason}`);
  }
  return db.transaction(async (tx) => {
    const keyId = await ensureKey(tx, project.id, deps);
    const input = { ...wanted, keyId, projectId: project.id, idempotencyKey };
    const { network, policy, maxSurchargeMicro, invoiceLifetimeMs } = project;
    const rule = { network, policy, maxSurchargeMicro, invoiceLifetimeMs };
    const created = await createInvoice({ ...deps, db: { ...db, ...tx } }, { ...input, ...rule });
    if (created.kind !== 'created' && created.kind !== 'replayed') throw refusalOf(created, wanted, keyId);
    const invoice = await findDeskInvoice(tx, project.id, created.invoice.id);
    if (invoice === null) throw new Error(`invoice ${created.invoice.id} is gone, though invoices are never deleted`);
    const isNew = created.kind === 'created';
    if (isNew) {
      const [subject, requestedAmount] = [encodeId('inv', invoice.id), formatAmount(wanted.requestedMicro)];
      const detail = { externalId: wanted.externalId, requestedAmount, note };
      await recordActions(tx, actor, now(), [{ projectId: project.id, action: 'invoice.created', subject, detail }]);
    }
    return { invoice: viewInvoice(invoice, publicUrl()), isNew };
  });
}

/** The clock of the database, for a command that makes one invoice and ends. */
export async function readDeadlineClock(db: Sql): Promise<DeadlineClock> {
  const clock = createDatabaseClock(systemClock, () => performance.now());
  clock.read(await readDatabaseClock(db), performance.now());
  return clock;
}

/** The key's id (UUID), always the same of a project. What stands for its secret is random, so none is accepted. */
async function ensureKey(tx: Sql, projectId: string, { random }: Pick<Deps, 'random'>): Promise<string> {
  const hex = createHash('sha256').update(`${HAND_KEY_NAME} ${projectId}`).digest('hex');
  const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  const secretSha256 = Buffer.from(random(32));
  await insertApiKey(tx, { id, projectId, name: HAND_KEY_NAME, secretSha256, allowedCidrs: null, expiresAt: null });
  return id;
}

function refusalOf(
  created: Exclude<Created, { kind: 'created' | 'replayed' }>,
  { requestedMicro, externalId }: Pick<Input, 'requestedMicro' | 'externalId'>,
  keyId: string,
): AppError {
  switch (created.kind) {
    case 'conflict': {
      const existing = encodeId('inv', created.existing.id);
      const text =
        created.rule === 'externalId'
          ? `the order ${clip(externalId)} has an invoice already: ${existing}. Look at it, or choose another order id`
          : `this form made ${existing} already, for other input`;
      return new AppError('CONFLICT', `nothing was made: ${text}`);
    }
    case 'amount-unavailable': {
      const where = created.addressesInUse === 0 ? 'the project has no address in use' : 'all are taken';
      const frozen =
        created.frozenAddresses === 0 ? '' : `, and Tether froze ${created.frozenAddresses} of its addresses`;
      return new AppError(
        'CONFLICT',
        say`no payable amount is free for ${formatAmount(requestedMicro)} USDT: ${where}${frozen}. Add an address with "${{ command: 'address add' }}" and try again`,
      );
    }
    case 'clocks-apart':
      return new AppError('CONFLICT', `nothing was made. ${created.problem}`);
    case 'project-archived':
      return new AppError(
        'CONFLICT',
        say`nothing was made: the project is archived. Put it back with "${{ command: 'project unarchive' }}" and try again`,
      );
    case 'key-not-valid':
      return new AppError(
        'CONFLICT',
        `invoices are no longer made by hand for this project: its key for them, ${encodeId('key', keyId)}, was revoked`,
      );
  }
}
