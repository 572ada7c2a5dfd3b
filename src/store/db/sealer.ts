import { timingSafeEqual } from 'node:crypto';
import { createHmacSha256 } from '../../runtime/hmac.ts';
import { deriveKey, type KeyRing } from '../../runtime/key-ring.ts';
import { canonical, type OpenedSeal, type SealedTable, type Sealer, TOO_DEEP } from './seal.ts';

type Mac = (text: string) => Buffer;

/** A MAC in a row: the id of the master key (8 bytes), and the first half of an HMAC-SHA-256. */
const [KEY_ID_BYTES, TAG_BYTES] = [8, 16];
/** Rows that were examined, by the MAC that their text begins with: some megabytes. */
const MAX_KNOWN = 10_000;
/** `["` and the MAC in hex. */
const NAME_CHARS = 2 + 2 * (KEY_ID_BYTES + TAG_BYTES);

/**
 * Seals rows of the ledger `ledgerId` with keys that are derived from the first key of the ring, one for each table; opens what any key of
 * the ring sealed.
 */
export function createSealer(ring: KeyRing, ledgerId: string): Sealer {
  const keys = new Map<string, Mac>();
  const known = new Map<SealedTable, Map<string, { column: string; opened: OpenedSeal }>>();
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
  const examine = (table: SealedTable, column: string): OpenedSeal => {
    const [mac, ...fields] = JSON.parse(column) as [string | null, ...unknown[]];
    const values = fields.map(canonical);
    if (mac === null) return { values, keyId: null, problem: 'unsealed' };
    const keyId = mac.slice(0, KEY_ID_BYTES * 2);
    const given = Buffer.from(mac, 'hex');
    const key = keyOf(keyId, table);
    if (key === null) return { values, keyId, problem: 'unknown-key' };
    const [tag, expected] = [given.subarray(KEY_ID_BYTES), tagOf(key, table, values)];
    const isRight = !values.includes(TOO_DEEP) && tag.length === TAG_BYTES && timingSafeEqual(tag, expected);
    return { values, keyId, problem: isRight ? null : 'changed' };
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
      if (values.includes(TOO_DEEP)) throw new Error(`a row of ${table.name} is nested too deep to be sealed`);
      return Buffer.concat([Buffer.from(id, 'hex'), tagOf(key, table, values)]);
    },
    open: (table, column) => {
      const ofTable = known.get(table) ?? new Map<string, { column: string; opened: OpenedSeal }>();
      // The whole text would take longer to look up than all the rest.
      const name = column.slice(0, NAME_CHARS);
      const before = ofTable.get(name);
      if (before?.column === column) return before.opened;
      const opened = examine(table, column);
      // A key may come to the ring, so only what is certain is remembered.
      if (opened.problem === 'unknown-key' || table.isReadOnce) return opened;
      if (ofTable.size >= MAX_KNOWN) ofTable.clear();
      known.set(table, ofTable.set(name, { column, opened }));
      return opened;
    },
  };
}

/** Each value goes in with its length, so that no two rows have the same bytes; a later one with its name, if it is there. */
function tagOf(mac: Mac, { fields, later }: SealedTable, values: readonly (string | null)[]): Buffer {
  let text = '';
  for (const [index, name] of Object.keys(fields).entries()) {
    const value = values[index] ?? null;
    if (!later.includes(name)) text += value === null ? '-' : `${value.length}:${value}`;
    else if (value !== null) text += `${name}=${value.length}:${value}`;
  }
  return mac(text).subarray(0, TAG_BYTES);
}
