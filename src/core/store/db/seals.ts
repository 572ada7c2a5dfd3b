import { hash, timingSafeEqual } from 'node:crypto';
import { type AppError, configInvalid } from '../../domain/errors.ts';
import { deriveKey, type KeyRing } from '../../runtime/key-ring.ts';
import type { Seals, Sql } from './database.ts';
import {
  findLedgerIdentity,
  hasLedgerIdentity,
  newLedgerId,
  refuseUnknownKey,
  requiresSeals,
  takeLedger,
} from './ledger-identity.ts';
import {
  canonical,
  coveredValues,
  type OpenedSeal,
  type SealedTable,
  type Sealer,
  type SealJudge,
  type SealMode,
  splitSeal,
  TOO_DEEP,
} from './seal.ts';

/** `ledger` means that the mode depends on how the ledger began. */
type Given = { mode: SealMode | 'ledger'; onProblem: SealJudge['onProblem'] };

/**
 * `keyRing` returns `null` if the process has no master key; in that case, the process neither seals nor verifies. It may create a key to
 * seal with.
 */
export function createSeals(
  { mode, onProblem }: Given,
  keyRing: (mayCreate: boolean) => Promise<KeyRing | null>,
): Seals {
  const judge: SealJudge = { mode: mode === 'ledger' ? 'warn' : mode, isOlder: true, onProblem };
  let opened: Awaited<ReturnType<Seals['open']>> = null;
  /** Whether a process without a key may continue. */
  let needsNone = mode !== 'ledger';
  const openRing = async (sql: Sql, ring: KeyRing, id: string) => {
    const sealer = createSealer(ring, id);
    await refuseUnknownKey(sql, sealer);
    judge.mode = modeOf(mode, id);
    judge.isOlder = !requiresSeals(id);
    return sealer;
  };
  return {
    judge,
    open: async (sql, mayCreate) => {
      if (opened !== null) return opened;
      const ring = await keyRing(mayCreate);
      if (ring === null && needsNone) return null;
      if (!(await hasLedgerIdentity(sql))) return null;
      const identity = await findLedgerIdentity(sql);
      if (ring === null) {
        const needsKey = identity !== null && requiresSeals(identity.id);
        // Read-only commands such as "master-key status" may run without a key.
        if (needsKey && mayCreate) throw withoutKey();
        needsNone = identity !== null && !needsKey;
        return null;
      }
      if (identity !== null) {
        opened = await openRing(sql, ring, identity.id);
        return opened;
      }
      if (!mayCreate) return null;
      // A command is running before a service's first start. Its writes may be rolled back, so the next statement has to check again.
      const id = await newLedgerId(sql, mode !== 'warn');
      await takeLedger(sql, { id, firstIndex: 0 }, 'none');
      return openRing(sql, ring, (await findLedgerIdentity(sql))?.id ?? id);
    },
  };
}

/** Returns how seals are handled in a ledger (UUID). */
export function modeOf(mode: Given['mode'], ledgerId: string): SealMode {
  if (mode !== 'ledger') return mode;
  return requiresSeals(ledgerId) ? 'require' : 'warn';
}

function withoutKey(): AppError {
  return configInvalid`this ledger requires seals, but this process has no master key to create them: set QUITTANCE_MASTER_KEY to the key that the ledger's other processes use`;
}

type Mac = (text: string) => Buffer;

/** The MAC in a row consists of the master key's id (8 bytes) and the first half of an HMAC-SHA-256. */
const [KEY_ID_BYTES, TAG_BYTES] = [8, 16];
/** Size of the verified-row cache: a few megabytes. */
const MAX_KNOWN = 10_000;

/**
 * Seals rows in the ledger `ledgerId` with keys derived from the ring's first key, one per table. Verifies seals made with any of the
 * ring's keys.
 */
export function createSealer(ring: KeyRing, ledgerId: string): Sealer {
  const keys = new Map<string, Mac>();
  /** The texts of verified rows, by row id. */
  const known = new Map<SealedTable, Map<string, string>>();
  const keyOf = (id: string, table: SealedTable): Mac | null => {
    const name = `${id} ${table.name}`;
    const before = keys.get(name);
    if (before !== undefined) return before;
    const master = ring.find(id);
    if (master === undefined) return null;
    const fields = Object.keys(table.fields).filter((field) => !table.later.includes(field));
    const purpose = `quittance row ${table.name} (${fields.join(' ')})`;
    const key = createHmacSha256(deriveKey(master, { purpose, salt: ledgerId }));
    keys.set(name, key);
    return key;
  };
  const examine = (table: SealedTable, parts: readonly string[]): OpenedSeal => {
    const given = Buffer.from(parts[0] ?? '', 'hex');
    if (given.length === 0) return { parts, keyId: null, problem: 'unsealed' };
    const keyId = given.toString('hex', 0, KEY_ID_BYTES);
    const key = keyOf(keyId, table);
    if (key === null) return { parts, keyId, problem: 'unknown-key' };
    const values = coveredValues(table, { parts });
    const [tag, expected] = [given.subarray(KEY_ID_BYTES), tagOf(key, table, values)];
    const isRight = !values.includes(TOO_DEEP) && tag.length === TAG_BYTES && timingSafeEqual(tag, expected);
    return { parts, keyId, problem: isRight ? null : 'changed' };
  };
  return {
    lacksKeyOf: (mac) => ring.find(mac.slice(0, KEY_ID_BYTES * 2)) === undefined,
    reload: () => ring.reload(),
    keyId: () => ring.current().id,
    seal: (table, row) => {
      const { id } = ring.current();
      const key = keyOf(id, table);
      if (key === null) throw new Error('the ring lacks its own current key');
      const values = Object.keys(table.fields).map((name) => canonical(row[name]));
      if (values.includes(TOO_DEEP)) throw new Error(`a row in ${table.name} is nested too deep to be sealed`);
      return Buffer.concat([Buffer.from(id, 'hex'), tagOf(key, table, values)]);
    },
    open: (table, column) => {
      // Splits the text again each time, because it's already in the CPU cache, and loading cached parts from elsewhere in memory takes
      // longer.
      const parts = splitSeal(column);
      const [mac = '', name = ''] = parts;
      const ofTable = known.get(table) ?? new Map<string, string>();
      if (ofTable.get(name) === column) return { parts, keyId: mac.slice(0, KEY_ID_BYTES * 2), problem: null };
      const opened = examine(table, parts);
      if (opened.problem !== null || table.isReadOnce) return opened;
      if (ofTable.size >= MAX_KNOWN) ofTable.clear();
      known.set(table, ofTable.set(name, column));
      return opened;
    },
  };
}

/**
 * Each value is preceded by its length, so that no two rows produce the same bytes. A field that was added later is included with its name,
 * but only if it has a value.
 */
function tagOf(mac: Mac, { fields, later }: SealedTable, values: readonly (string | null)[]): Buffer {
  let text = '';
  for (const [index, name] of Object.keys(fields).entries()) {
    const value = values[index] ?? null;
    if (!later.includes(name)) text += value === null ? '-' : `${value.length}:${value}`;
    else if (value !== null) text += `${name}=${value.length}:${value}`;
  }
  return mac(text).subarray(0, TAG_BYTES);
}

const [BLOCK_BYTES, DIGEST_BYTES] = [64, 32];
const [INNER, OUTER] = [0x36, 0x5c];
/** Most rows fit into this. Each UTF-16 unit needs at most three bytes, because a surrogate pair needs four for its two units. */
const SCRATCH_BYTES = 8192;
const MOST_BYTES_EACH = 3;

/**
 * Returns a function that computes the HMAC-SHA-256 (RFC 2104) of UTF-8 texts. The key must not exceed 64 bytes. `createHmac` would
 * allocate an OpenSSL object per MAC, which cost 2 % more CPU per created invoice.
 */
export function createHmacSha256(key: Buffer): (text: string) => Buffer {
  if (key.length > BLOCK_BYTES) throw new RangeError(`the key is longer than ${BLOCK_BYTES} bytes`);
  const pad = (byte: number) => Buffer.alloc(BLOCK_BYTES).map((_, index) => (key[index] ?? 0) ^ byte);
  const scratch = Buffer.concat([pad(INNER)], SCRATCH_BYTES);
  const outer = Buffer.concat([pad(OUTER)], BLOCK_BYTES + DIGEST_BYTES);
  const inner = (text: string): Buffer => {
    if (BLOCK_BYTES + text.length * MOST_BYTES_EACH > SCRATCH_BYTES)
      return Buffer.concat([scratch.subarray(0, BLOCK_BYTES), Buffer.from(text)]);
    return scratch.subarray(0, BLOCK_BYTES + scratch.write(text, BLOCK_BYTES));
  };
  return (text) => {
    hash('sha256', inner(text), 'buffer').copy(outer, BLOCK_BYTES);
    return hash('sha256', outer, 'buffer');
  };
}
