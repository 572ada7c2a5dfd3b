import { type AccountHex, accountToAddress, type TronAddress } from '@quittance/tron/address';
import { AppError } from '../../domain/errors.ts';
import type { Policy } from '../../domain/policy.ts';
import { describeSealProblem, type LeftOut, leaveOut, type Sealer, type SealJudge, sealText } from './seal.ts';
import { SEALED_ADDRESS } from './sealed-tables.ts';
import type { Statement } from './statement.ts';

/** An address whose text doesn't match its account. One of the two was changed in a way that bypassed the database's guards. */
export type DamagedAddress = { network: string; account: AccountHex; stored: string };

/** An address in the database with its project (UUID). Its text matches its account. */
export type OwnAddress = { network: string; projectId: string; account: AccountHex; address: TronAddress };
/** An address that may be added to a project (UUID). */
export type NewPlace = Omit<OwnAddress, 'account'>;
/** A project (UUID) and the stored settings that its invoices are created with. */
export type OwnRule = { network: string; projectId: string; policy: Policy; maxSurchargeMicro: bigint };
type StoredAddress = OwnAddress & { id: string; mac: string | null };

type ReadAddress = ({ kind: 'ok' } & StoredAddress) | ({ kind: 'damaged' } & DamagedAddress);

/**
 * The SQL for a column of type `address`: network, project, account, id, MAC and text, separated by spaces. `table` is the name or alias of
 * `addresses`.
 */
export function addressColumn(table: string): string {
  const parts = ['network', 'project_id', `account`, 'id', 'mac', 'address'].map((name) => {
    if (name === 'account') return `encode(${table}.account, 'hex')`;
    return name === 'mac' ? `coalesce(encode(${table}.mac, 'hex'), '-')` : `${table}.${name}`;
  });
  return parts.join(` || ' ' || `);
}

/** The cache takes at most a few megabytes. Addresses that don't fit are computed each time. */
const MAX_KNOWN = 20_000;
const known = new Map<string, ReadAddress>();

/**
 * Reads a column of type `address`. People see the text, but the watcher searches for the account, so the stored text must match the text
 * that is computed from the account.
 */
export function readAddress(column: string): ReadAddress {
  const before = known.get(column);
  if (before !== undefined) return before;
  const split = splitAddress(column);
  const { network, account, address: stored } = split;
  const isSound = accountToAddress(account) === stored;
  const read: ReadAddress = isSound ? { kind: 'ok', ...split } : { kind: 'damaged', network, account, stored };
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(column, read);
  return read;
}

/** Called for each statement that fails because of a damaged address. */
type OnDamagedAddress = (damaged: DamagedAddress) => void;

/** Splits such a column into its stored parts, without comparing text and account. */
function splitAddress(column: string): StoredAddress {
  const [network = '', projectId = '', account = '', id = '', mac = '', ...rest] = column.split(' ');
  const address = rest.join(' ') as TronAddress;
  return { network, projectId, account: account as AccountHex, id, mac: mac === '-' ? null : mac, address };
}

/** Checks the addresses that a statement reads. `refuse` returns why an address must not be used, or `null`. */
export type AddressChecks = {
  onDamaged?: OnDamagedAddress | undefined;
  refuse?: ((address: OwnAddress, statement: string) => string | null) | undefined;
  /** Like `refuse`, but for an address that isn't in the database yet. Reports nothing. */
  refuseNew?: ((address: NewPlace) => string | null) | undefined;
  /** Like `refuse`, but for the settings that an invoice would be created with. */
  refuseRule?: ((rule: OwnRule) => string | null) | undefined;
  /**
   * Whether to leave out an address's row, as if the address weren't ours. If the statement returns the state of its seal, the row is kept
   * without the address, and its seal counts as wrong. Otherwise, a page without any usable address would look like the last page.
   */
  passesOver?: ((address: OwnAddress, statement: string) => boolean) | undefined;
};

/**
 * Replaces each value of type `address` with the address. Errors: `ADDRESS_DAMAGED`, `ADDRESS_NOT_VOUCHED` for a refused address,
 * `ROW_CHANGED` for a wrong seal. With `leftOut`, nothing is thrown.
 */
export function readAddresses(
  statement: Pick<Statement, 'name' | 'columns' | 'addressColumns' | 'sealColumns'>,
  rows: Record<string, unknown>[],
  checks: AddressChecks = {},
  sealing: { sealer: Sealer; judge: SealJudge } | null = null,
  leftOut?: LeftOut[],
): void {
  const { addressColumns, sealColumns } = statement;
  if (addressColumns.length === 0) return;
  const told = sealColumns.find(({ table, isTold }) => isTold && table === SEALED_ADDRESS);
  const passedOver = new Set<unknown>();
  const refused = new Map<unknown, AppError>();
  // Hundreds of rows may have the same address.
  const readOnce = new Map<unknown, unknown>();
  for (const row of rows) {
    for (const column of addressColumns) {
      const value = row[column];
      const read = readOnce.get(value) ?? readColumn(statement, value, column, { checks, sealing });
      if (typeof value === 'string') readOnce.set(value, read);
      if (read === 'passed-over') {
        if (told === undefined) passedOver.add(row);
        else Object.assign(row, { [column]: '', [told.column]: false });
      } else if (read instanceof AppError) refused.set(row, read);
      else row[column] = read;
    }
  }
  if (passedOver.size > 0) rows.splice(0, rows.length, ...rows.filter((row) => !passedOver.has(row)));
  leaveOut(rows, refused, leftOut);
}

function readColumn(
  { name, columns, sealColumns }: Pick<Statement, 'name' | 'columns' | 'sealColumns'>,
  value: unknown,
  column: string,
  {
    checks: { onDamaged, refuse, passesOver },
    sealing,
  }: { checks: AddressChecks; sealing: { sealer: Sealer; judge: SealJudge } | null },
): unknown {
  if (value === null && columns[column] === 'address')
    return new AppError('ADDRESS_DAMAGED', `an address in the database has no account or no text (${name})`);
  if (typeof value !== 'string') return value;
  const read = readAddress(value);
  if (read.kind === 'damaged') {
    onDamaged?.(read);
    return new AppError('ADDRESS_DAMAGED', `${describeDamaged(read)} (${name})`);
  }
  if (passesOver?.(read, name) === true) return 'passed-over';
  const reason = refuse?.(read, name) ?? null;
  if (reason !== null) return new AppError('ADDRESS_NOT_VOUCHED', `${reason} (${name})`);
  // Some statements return the state of the address's seal in a separate field.
  const tells = sealColumns.some(({ table }) => table === SEALED_ADDRESS);
  const problem = sealing === null || tells ? null : examineSeal(read, sealing, name);
  return problem ?? read.address;
}

/** Whether an address was sealed with a key that this process doesn't have. Another process may have inserted such an address. */
export function lacksKey(
  { addressColumns }: Pick<Statement, 'addressColumns'>,
  rows: readonly Record<string, unknown>[],
  sealer: Sealer,
): boolean {
  const values = new Set(rows.flatMap((row) => addressColumns.map((column) => row[column])));
  return [...values].some((value) => {
    const mac = typeof value === 'string' ? splitAddress(value).mac : null;
    return mac !== null && sealer.lacksKeyOf(mac);
  });
}

function examineSeal(
  { id, projectId, account, network, mac }: StoredAddress,
  { sealer, judge }: { sealer: Sealer; judge: SealJudge },
  name: string,
): AppError | null {
  const { problem: kind } = sealer.open(SEALED_ADDRESS, sealText(mac, [id, projectId, account]));
  if (kind === null) return null;
  const problem = { table: SEALED_ADDRESS.name, id, network, kind };
  judge.onProblem(problem, judge);
  return judge.mode === 'require' ? new AppError('ROW_CHANGED', `${describeSealProblem(problem)} (${name})`) : null;
}

/** Describes the damage and the fix for the operator. The stored text may be a thief's address. */
export function describeDamaged({ network, account, stored }: DamagedAddress): string {
  return `a ${network} address was changed directly in the database: its text is ${stored.slice(0, 40)}, but its account is ${accountToAddress(account)}. Quittance does not show this address, and does not process anything for it. See "address-damaged" in docs/reference/alarms.md`;
}
