import type { Config } from '../../config.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import type { KeyRing } from '../../runtime/key-ring.ts';
import { openKeyRing, requireKeyRing } from '../../runtime/open-key-ring.ts';
import type { Sql } from '../../store/database.ts';
import { findCurrentReceiptKey } from '../../store/receipt-keys.ts';
import { tellMissingKeys } from '../../webhooks/refuse-missing-keys.ts';
import { CliError } from '../cli-error.ts';
import { tellMissingReceiptKey } from '../receipt/missing-key.ts';
import type { Terminal } from '../terminal.ts';

/**
 * The keys with which a command seals a new secret. Refuses keys, and does not make one, where those are missing that seal other
 * secrets: the service, which has them, could not open the new secret. `isKeyLost`: the operator says that they are lost for ever.
 */
export async function openSealingKeys(
  { db, config, terminal }: { db: Sql; config: Config; terminal: Terminal },
  { isKeyLost = false }: { isKeyLost?: boolean } = {},
): Promise<KeyRing> {
  const atHand = await openKeyRing(config, { mayCreate: false });
  const missing =
    (await tellMissingKeys({ db, keyRing: atHand }, unixMs(systemClock.now()))) ??
    tellMissingReceiptKey(atHand, await findCurrentReceiptKey(db));
  const isLackingVariable = atHand === null && config.databaseUrl !== null;
  if (missing !== null && !isKeyLost && !isLackingVariable) {
    throw new CliError('CONFIG_INVALID', `${missing}; nothing was changed`);
  }
  return requireKeyRing(config, terminal.note);
}
