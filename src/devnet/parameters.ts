import { type AccountHex, accountFromHex41, accountToAddress, parseAddress } from '../tron/address.ts';

/** What a request carries: the fields of its JSON body, or of its query string as text. */
export type Parameters = Readonly<Record<string, unknown>>;

/** A request that a node answers with status 200 and `{"Error":"class … : …"}`. */
export class ParameterError extends Error {
  override name = 'ParameterError';
}

export function textParameter(parameters: Parameters, name: string): string {
  const value = parameters[name];
  if (value === undefined || value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new ParameterError(`${name} must be text`);
}

/** An integer given as a number or as digits, and 0 when absent, as in protobuf. */
export function integerParameter(parameters: Parameters, name: string): number {
  const text = textParameter(parameters, name);
  const value = text === '' ? 0 : Number(text);
  if (!Number.isSafeInteger(value)) throw new ParameterError(`For input string: "${text}"`);
  return value;
}

export function booleanParameter(parameters: Parameters, name: string): boolean {
  return parameters[name] === true || parameters[name] === 'true';
}

export function hexParameter(parameters: Parameters, name: string): string {
  const text = textParameter(parameters, name).replace(/^0x/i, '').toLowerCase();
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) throw new ParameterError(`INVALID hex String: ${name}`);
  return text;
}

/** An address: base58 when the request says `visible`, else `41` and 40 hex characters. */
export function accountParameter(parameters: Parameters, name: string): AccountHex {
  const text = textParameter(parameters, name);
  if (booleanParameter(parameters, 'visible')) {
    const parsed = parseAddress(text);
    if (parsed.kind === 'ok') return parsed.account;
    throw new ParameterError(`Invalid address ${name}: ${parsed.reason}`);
  }
  const account = accountFromHex41(text);
  if (account === null) throw new ParameterError(`INVALID hex String: ${name}`);
  return account;
}

/** An address as an answer shows it. */
export function accountJson(account: AccountHex, visible: boolean): string {
  return visible ? accountToAddress(account) : `41${account}`;
}
