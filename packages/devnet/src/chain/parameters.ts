import { type AccountHex, accountFromHex41, accountToAddress, parseAddress } from '@quittance/tron/address';

/** The parameters of a request: the fields of its JSON body, or of its query string, as text. */
export type Parameters = Readonly<Record<string, unknown>>;

/** The exception thrown by java-tron's JSON parser. */
const PARSE_ERROR = 'org.tron.core.services.http.JsonFormat$ParseException';

/** Thrown for a request that a node answers with status 200 and `{"Error":"class … : …"}`. Some errors have no class. */
export class ParameterError extends Error {
  override name = 'ParameterError';
  readonly #javaClass: string | null;

  constructor(message: string, javaClass: string | null = 'java.lang.IllegalArgumentException') {
    super(message);
    this.#javaClass = javaClass;
  }

  /** The text that the node writes after `Error`. */
  get nodeText(): string {
    return this.#javaClass === null ? this.message : `class ${this.#javaClass} : ${this.message}`;
  }
}

/** Reads text as strictly as java-tron. Returns an empty text if the parameter is absent, and refuses a number. */
export function exactText(parameters: Parameters, name: string): string {
  const value = parameters[name] ?? '';
  if (typeof value === 'string') return value;
  throw new ParameterError(`${position(parameters, name)}: Expected string.`, PARSE_ERROR);
}

/** Reads an integer as strictly as java-tron. Returns 0 if the parameter is absent, and refuses text. */
export function exactInteger(parameters: Parameters, name: string): number {
  const value = parameters[name] ?? 0;
  if (Number.isSafeInteger(value)) return value as number;
  const shown = `Couldn't parse integer: For input string: "${JSON.stringify(value)}"`;
  throw new ParameterError(`${position(parameters, name)}: ${shown}`, PARSE_ERROR);
}

export function exactBoolean(parameters: Parameters, name: string): boolean {
  const value = parameters[name] ?? false;
  if (typeof value === 'boolean') return value;
  throw new ParameterError(`${position(parameters, name)}: Expected "true" or "false".`, PARSE_ERROR);
}

/** Returns an id as lowercase hex. */
export function idParameter(parameters: Parameters, name: string): string {
  const text = exactText(parameters, name).replace(/^0x/i, '').toLowerCase();
  if (/^[0-9a-f]*$/.test(text)) return text;
  throw new ParameterError(`${position(parameters, name)}: INVALID hex String`, PARSE_ERROR);
}

/** Returns a value's position in a body that has these parameters and no spaces, as java-tron counts it. */
function position(parameters: Parameters, name: string): string {
  const entries = Object.entries(parameters);
  const before = entries.slice(0, Object.keys(parameters).indexOf(name));
  const text = JSON.stringify(Object.fromEntries(before)).slice(0, -1);
  return `1:${text.length + (before.length > 0 ? 1 : 0) + JSON.stringify(name).length + 2}`;
}

export function textParameter(parameters: Parameters, name: string): string {
  const value = parameters[name];
  if (value === undefined || value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new ParameterError(`${name} must be text`);
}

/** Reads an integer that may be a number or digits. As in protobuf, an absent integer is 0. */
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

/** Reads an address: base58 if the request says `visible`, otherwise `41` and 40 hex characters. */
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

export function accountJson(account: AccountHex, visible: boolean): string {
  return visible ? accountToAddress(account) : `41${account}`;
}
