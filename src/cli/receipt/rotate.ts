import { randomBytes } from 'node:crypto';
import { rotateReceiptKey } from '../../checkout/seal-receipt-key.ts';
import { unixMs } from '../../domain/time.ts';
import { systemClock } from '../../runtime/clock.ts';
import { formatFields, type Result, type Terminal } from '../terminal.ts';
import { openSealingKeys } from '../webhook/sealing-keys.ts';
import { withDatabase } from '../with-database.ts';

export type RotateOptions = { keyIsLost?: boolean };

/** Makes a new key that signs receipts. The former one signs no more; its public part stays published, its private part is erased. */
export async function rotateReceipts(terminal: Terminal, options: RotateOptions): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const keyRing = await openSealingKeys({ db, config, terminal }, { isKeyLost: options.keyIsLost === true });
    const deps = { db, keyRing, now: unixMs(systemClock.now()), random: randomBytes };
    const { keyId, formerKeyId } = await rotateReceiptKey(deps);
    return {
      data: { keyId, formerKeyId },
      text: formatFields([
        ['signing key', keyId],
        ['former key', formerKeyId],
      ]),
      next: 'services sign with it from their next receipt on; who keeps a copy of the published keys must fetch them again',
    };
  });
}
