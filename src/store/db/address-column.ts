import { AppError } from '../../domain/errors.ts';
import type { Policy } from '../../domain/policy.ts';
import { type AccountHex, accountToAddress, type TronAddress } from '../../tron/address.ts';
import { describeSealProblem, type LeftOut, leaveOut, type Sealer, type SealJudge } from './seal.ts';
import { sealText } from './seal-text.ts';
import { SEALED_ADDRESS } from './sealed-tables.ts';
import type { Statement } from './statement.ts';

/** An address whose text is not that of its account: one of the two was changed past the guards of the database. */
export type DamagedAddress = { network: string; account: AccountHex; stored: string };

/** An address as it stands in the database, with the project that has it (UUID). Its text is that of its account. */
export type OwnAddress = { network: string; projectId: string; account: AccountHex; address: TronAddress };
/** What the invoices of a project (UUID) are made under, as it stands in the database. */
export type OwnRule = { network: string; projectId: string; policy: Policy; maxSurchargeMicro: bigint };
type StoredAddress = OwnAddress & { id: string; mac: string | null };

type ReadAddress = ({ kind: 'ok' } & StoredAddress) | ({ kind: 'damaged' } & DamagedAddress);

/** A column of the type `address` in SQL: network, project, account, id, MAC and text, with spaces between. `table`: the name or alias of `addresses`. */
export function addressColumn(table: string): string {
  const parts = ['network', 'project_id', `account`, 'id', 'mac', 'address'].map((name) => {
    if (name === 'account') return `encode(${table}.account, 'hex')`;
    return name === 'mac' ? `coalesce(encode(${table}.mac, 'hex'), '-')` : `${table}.${name}`;
  });
  return parts.join(` || ' ' || `);
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
  const split = splitAddress(column);
  const { network, account, address: stored } = split;
  const isSound = accountToAddress(account) === stored;
  const read: ReadAddress = isSound ? { kind: 'ok', ...split } : { kind: 'damaged', network, account, stored };
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(column, read);
  return read;
}

/** Is told of each statement that fails because of one. */
type OnDamagedAddress = (damaged: DamagedAddress) => void;

/** The parts of such a column as they are stored; whether the text is that of the account remains to be seen. */
function splitAddress(column: string): StoredAddress {
  const [network = '', projectId = '', account = '', id = '', mac = '', ...rest] = column.split(' ');
  const address = rest.join(' ') as TronAddress;
  return { network, projectId, account: account as AccountHex, id, mac: mac === '-' ? null : mac, address };
}

/** Looks at addresses as they are read by the named statement. `refuse`: why one must not be used, in words; `null`: it may be. */
export type AddressChecks = {
  onDamaged?: OnDamagedAddress | undefined;
  refuse?: ((address: OwnAddress, statement: string) => string | null) | undefined;
  /** The same of the settings that an invoice would be made under. */
  refuseRule?: ((rule: OwnRule) => string | null) | undefined;
  /** Whether the row of an address is left out, as if it were not ours. */
  passesOver?: ((address: OwnAddress, statement: string) => boolean) | undefined;
};

/**
 * Puts the address in the place of the value of each column of the type `address`. Errors: `ADDRESS_DAMAGED`, and `ADDRESS_NOT_VOUCHED`
 * for one that is refused, and `ROW_CHANGED` for one that is not as it was sealed; or with `leftOut` none.
 */
export function readAddresses(
  statement: Pick<Statement, 'name' | 'columns' | 'addressColumns' | 'sealColumns'>,
  rows: Record<string, unknown>[],
  checks: AddressChecks = {},
  sealing: { sealer: Sealer; judge: SealJudge } | null = null,
  leftOut?: LeftOut[],
): void {
  const { addressColumns } = statement;
  if (addressColumns.length === 0) return;
  const passedOver = new Set<unknown>();
  const refused = new Map<unknown, AppError>();
  // Hundreds of rows may have one address.
  const readOnce = new Map<unknown, unknown>();
  for (const row of rows) {
    for (const column of addressColumns) {
      const value = row[column];
      const read = readOnce.get(value) ?? readColumn(statement, value, column, { checks, sealing });
      if (typeof value === 'string') readOnce.set(value, read);
      if (read === 'passed-over') passedOver.add(row);
      else if (read instanceof AppError) refused.set(row, read);
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
  // Some say by a field of their own whether the address is as it was sealed.
  const tells = sealColumns.some(({ table }) => table === SEALED_ADDRESS);
  const problem = sealing === null || tells ? null : examineSeal(read, sealing, name);
  return problem ?? read.address;
}

/** Whether an address was sealed with a key that is not at hand: another process may have made it. */
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

/** It says to the operator what happened and what to do: the stored text may be a thief's. */
export function describeDamaged({ network, account, stored }: DamagedAddress): string {
  return `an address of ${network} was changed directly in the database: its text is ${stored.slice(0, 40)}, but its account is ${accountToAddress(account)}. Quittance does not show it, and does not process anything for it. See "address-damaged" in docs/guides/operations.md`;
}
