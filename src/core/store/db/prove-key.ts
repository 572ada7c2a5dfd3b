import { AppError } from '../../domain/errors.ts';
import type { Sql } from './database.ts';
import { answerOf, commandOf, rowsOf } from './rows-of.ts';
import { type SealedTable, type Sealer, sealColumn, sealOf } from './seal.ts';
import {
  SEALED_ACCOUNT_KEY,
  SEALED_ADDRESS,
  SEALED_CURSOR,
  SEALED_PROOF,
  SEALED_RECEIPT_KEY,
} from './sealed-tables.ts';

/** Tables that every release since the introduction of seals has had, with the same fields. */
const SAMPLED: readonly SealedTable[] = [SEALED_ADDRESS, SEALED_ACCOUNT_KEY, SEALED_RECEIPT_KEY, SEALED_CURSOR];
const SAMPLE_ROWS = 10;

const findParts = answerOf(
  'key-proof-parts',
  { hasProofs: 'bool', hasSeals: 'bool' },
  `select to_regclass('ledger_proofs') is not null as has_proofs, exists (
     select from pg_attribute where attrelid = to_regclass('addresses') and attname = 'mac' and not attisdropped) as has_seals`,
  () => [],
  ([row]) => row ?? { hasProofs: false, hasSeals: false },
);

const readProofs = rowsOf(
  'key-proofs',
  { seal: 'text' },
  `select ${sealColumn(SEALED_PROOF, 'p.')} as seal from ledger_proofs p order by proven_at desc limit 1000`,
);

const readSample = rowsOf(
  'key-proof-sample',
  { place: 'int4', seal: 'text' },
  SAMPLED.map(
    (table, place) =>
      `(select ${place} as place, ${sealColumn(table, 't.')} as seal from ${table.name} t where t.mac is not null limit ${SAMPLE_ROWS})`,
  ).join(' union all '),
);

/**
 * Refuses master keys that have never sealed anything in this ledger. This happens before such a process can report rows as changed or
 * write rows that are sealed with these keys. A ledger without sealed rows accepts any key. Throws `CONFIG_INVALID`.
 */
export async function refuseUnknownKey(sql: Sql, sealer: Sealer): Promise<void> {
  const { hasProofs, hasSeals } = await findParts(sql);
  const proofs = hasProofs ? (await readProofs(sql)).map(({ seal }) => sealer.open(SEALED_PROOF, seal)) : [];
  if (proofs.some(({ problem }) => problem === null)) return;
  const sample = hasSeals ? await readSample(sql) : [];
  const sampled = sample.flatMap(({ place, seal }) => {
    const table = SAMPLED[place];
    return table === undefined ? [] : [sealer.open(table, seal)];
  });
  // A forged proof must not block the start.
  if (sampled.some(({ problem }) => problem === null)) return;
  const met = [...proofs, ...sampled];
  if (met.length === 0) return;
  const keyIds = [...new Set(met.flatMap(({ keyId }) => keyId ?? []))].slice(0, 3).join(', ');
  throw new AppError(
    'CONFIG_INVALID',
    `this process's master key (${sealer.keyId()}) did not seal any row of this ledger; the ledger's seals are from ${keyIds}. Nothing was written. Set QUITTANCE_MASTER_KEY to the ledger's key; during a rotation, set it to both keys, separated by a comma. If the key is correct, the table ledger_identity was changed directly`,
  );
}

/** Records that the sealing key belongs to this ledger. */
export const recordProof = commandOf(
  'key-proof-record',
  'insert into ledger_proofs (key_id, mac) values ($1, $2) on conflict (key_id) do nothing',
  (keyId: string) => [keyId, sealOf(SEALED_PROOF, { keyId })],
);
