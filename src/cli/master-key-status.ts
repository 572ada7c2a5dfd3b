import { unixMs } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import type { KeyRing, KeySource } from '../runtime/key-ring.ts';
import { openKeyRing } from '../runtime/open-key-ring.ts';
import { findCurrentReceiptKey } from '../store/receipt-keys.ts';
import { countSecretsByKey } from '../store/webhook-secrets.ts';
import { tellMissingKeys } from '../webhooks/refuse-missing-keys.ts';
import { EXIT } from './cli-error.ts';
import { tellMissingReceiptKey } from './receipt/missing-key.ts';
import { formatFields, formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

/** Shows the keys by their ids. Exits 1 where what still signs is sealed under a key that is not here. */
export async function showMasterKeys(terminal: Terminal): Promise<Result> {
  return withDatabase(terminal, async ({ db, config }) => {
    const ring = await openKeyRing(config, { mayCreate: false, warn: terminal.note });
    const now = unixMs(systemClock.now());
    const receiptKey = await findCurrentReceiptKey(db);
    const keys = describeKeys(ring, await countSecretsByKey(db, now), receiptKey?.masterKeyId ?? null);
    const isMissing = keys.some(({ use }) => use === 'missing');
    const source = ring === null ? 'none' : nameSource(ring.source);
    const rows = keys.map(({ keyId, use, signing, ended, sealsReceiptKey, canBeDropped }) => [
      keyId,
      use,
      String(signing),
      String(ended),
      sealsReceiptKey ? 'yes' : 'no',
      canBeDropped ? 'yes' : 'no',
    ]);
    const table = formatTable(['KEY', 'USE', 'SIGNING SECRETS', 'ENDED', 'RECEIPTS', 'CAN BE DROPPED'], rows);
    return {
      data: { source, keys },
      text: [formatFields([['keys from', source]]), table].filter((part) => part !== '').join('\n\n'),
      ...hint(
        (await tellMissingKeys({ db, keyRing: ring }, now)) ?? tellMissingReceiptKey(ring, receiptKey),
        ring === null,
        config.databaseUrl !== null,
      ),
      exitCode: isMissing ? EXIT.failed : EXIT.ok,
    };
  });
}

/** The variable, or the path of the file. */
export function nameSource(source: KeySource): string {
  return source.kind === 'file' ? source.path : 'QUITTANCE_MASTER_KEY';
}

/** Ended secrets sign nothing any more, so no key is kept for them. */
function describeKeys(
  ring: KeyRing | null,
  counts: ReadonlyMap<string, { total: number; signing: number }>,
  ofReceipts: string | null,
) {
  const present = (ring?.keys() ?? []).map(({ id }) => id);
  const describe = (keyId: string, use: 'seals' | 'opens' | 'missing') => {
    const { total, signing } = counts.get(keyId) ?? { total: 0, signing: 0 };
    const sealsReceiptKey = keyId === ofReceipts;
    const canBeDropped = use === 'opens' && signing === 0 && !sealsReceiptKey;
    return { keyId, use, signing, ended: total - signing, sealsReceiptKey, canBeDropped };
  };
  const needed = [...counts].filter(([, { signing }]) => signing > 0).map(([keyId]) => keyId);
  return [
    ...present.map((keyId, index) => describe(keyId, index === 0 ? 'seals' : 'opens')),
    ...[...new Set([...needed, ...(ofReceipts === null ? [] : [ofReceipts])])]
      .filter((keyId) => !present.includes(keyId))
      .map((keyId) => describe(keyId, 'missing')),
  ];
}

function hint(missing: string | null, hasNone: boolean, isExternal: boolean): { next?: string } {
  if (missing !== null) return { next: missing };
  if (!hasNone) return {};
  return {
    next: isExternal
      ? 'QUITTANCE_MASTER_KEY is not set; make a key with "openssl rand -base64 32"'
      : 'no key yet: it is made when the first secret is sealed',
  };
}
