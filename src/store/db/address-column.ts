import { AppError } from '../../domain/errors.ts';
import { type AccountHex, accountToAddress, type TronAddress } from '../../tron/address.ts';
import type { Statement } from './statement.ts';

/** An address whose text is not that of its account: one of the two was changed past the guards of the database. */
export type DamagedAddress = { network: string; account: AccountHex; stored: string };

export type ReadAddress = { kind: 'ok'; address: TronAddress } | ({ kind: 'damaged' } & DamagedAddress);

/** A column of the type `address` in SQL: `devnet 41…40 hex characters… T…`. `table`: its name or alias. */
export function addressColumn(table: string): string {
  return `${table}.network || ' ' || encode(${table}.account, 'hex') || ' ' || ${table}.address`;
}

/** A few megabytes. Any address beyond is computed anew. */
const MAX_KNOWN = 20_000;
const known = new Map<string, ReadAddress>();

/**
 * Reads a column of the type `address`. The text is what people are shown and the account is what the watcher looks for, so an address
 * is good only if the text computed from the account is the stored one.
 */
export function readAddress(column: string): ReadAddress {
  const before = known.get(column);
  if (before !== undefined) return before;
  const [network = '', account = '', ...rest] = column.split(' ');
  const stored = rest.join(' ');
  const address = accountToAddress(account as AccountHex);
  const read: ReadAddress =
    address === stored ? { kind: 'ok', address } : { kind: 'damaged', network, account: account as AccountHex, stored };
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(column, read);
  return read;
}

/** Is told of each statement that fails because of one. */
export type OnDamagedAddress = (damaged: DamagedAddress) => void;

/** Puts the address in the place of the value of each column of the type `address`. Error: `ADDRESS_DAMAGED`. */
export function readAddresses(
  { name, columns, addressColumns }: Pick<Statement, 'name' | 'columns' | 'addressColumns'>,
  rows: Record<string, unknown>[],
  onDamaged?: OnDamagedAddress,
): void {
  if (addressColumns.length === 0) return;
  for (const row of rows) {
    for (const column of addressColumns) {
      const value = row[column];
      if (value === null && columns[column] === 'address') {
        throw new AppError('ADDRESS_DAMAGED', `an address in the database has no account or no text (${name})`);
      }
      if (typeof value !== 'string') continue;
      const read = readAddress(value);
      if (read.kind === 'damaged') {
        onDamaged?.(read);
        throw new AppError('ADDRESS_DAMAGED', `${describeDamaged(read)} (${name})`);
      }
      row[column] = read.address;
    }
  }
}

/** It says to the operator what happened and what to do: the stored text may be a thief's. */
export function describeDamaged({ network, account, stored }: DamagedAddress): string {
  return `somebody changed an address of ${network} in the database: its text is ${stored.slice(0, 40)}, and its account is ${accountToAddress(account)}. It is shown to nobody, and what concerns it waits. See "address-damaged" in docs/operations.md`;
}
