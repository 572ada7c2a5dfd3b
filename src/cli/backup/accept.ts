import { randomBytes } from 'node:crypto';
import { unixMs } from '../../domain/time.ts';
import { secureCopy } from '../../payments/secure-copy.ts';
import { systemClock } from '../../runtime/clock.ts';
import { findLedgerIdentity, refuseForeignLedger, takeLedger } from '../../store/ledger-identity.ts';
import { CliError } from '../cli-error.ts';
import { readOperator } from '../operator.ts';
import type { Result, Terminal } from '../terminal.ts';
import { type CommandDatabase, withDatabase } from '../with-database.ts';
import { refuseRunning } from './refuse-running.ts';

export type AcceptOptions = { retireAddresses?: boolean; nothingCreatedSince?: boolean; by?: string };

/**
 * Goes on with a ledger that came here around our commands. `--retire-addresses` also where that was not noticed, as after a recovery
 * of the server to an earlier moment.
 */
export async function acceptCopy(terminal: Terminal, options: AcceptOptions): Promise<Result> {
  const retires = options.retireAddresses === true;
  if (retires === (options.nothingCreatedSince === true)) {
    throw new CliError('USAGE', 'give one of --retire-addresses and --nothing-created-since; if in doubt, the first');
  }
  const operator = readOperator(options.by, terminal.env);
  const work = async (database: CommandDatabase): Promise<Result> => {
    const { db } = database;
    await refuseRunning(database);
    const identity = await findLedgerIdentity(db);
    if (identity === null) throw nothingToAccept('no service was ever started over this database');
    refuseForeignLedger({ ...identity, isHere: true });
    if (!retires && identity.isHere) throw nothingToAccept('this database is no copy, as far as can be told');
    const now = unixMs(systemClock.now());
    const secured = await db.transaction(async (tx) => {
      await takeLedger(tx, identity, { isAnew: true });
      const deps = { now: () => now, random: (bytes: number) => randomBytes(bytes), operator };
      return retires ? secureCopy(tx, deps, `a copy, accepted at ${new Date(now).toISOString()}`) : [];
    });
    const barred = secured.reduce((sum, each) => sum + each.barred, 0);
    return {
      data: { ledgerId: identity.id, retired: retires, barredAddresses: barred },
      text: retires
        ? `accepted: ${barred} addresses are out of use for ever, and watched`
        : 'accepted: the ledger goes on here as it is',
      next: retires
        ? 'add addresses that Quittance never had, or new invoices are refused: docs/backup.md'
        : 'never start a service over the other database again',
    };
  };
  return withDatabase(terminal, work, { mayCreate: false, mayMigrate: false, asOwner: true });
}

function nothingToAccept(reason: string): CliError {
  return new CliError('CONFLICT', `${reason}: there is nothing to accept; nothing was changed`);
}
