import type { FastifyRequest } from 'fastify';
import type { Adapter } from '../../core/store/outbox/adapter-orders.ts';
import { asNumber, type Fields, startedField } from '../../core/webhooks/adapter-dialect.ts';
import { CODES, Refusal } from './refusal.ts';

/** How a field in another system's protocol is handled. Empty fields count as absent. */
type Decision = 'used' | { ignored: string } | { refused: string };
type Form = Readonly<Record<string, Decision>>;

const ADDRESS = { refused: 'the operator sets the receiving addresses' };
const RATE = { refused: 'the operator sets the rate' };
const ONE_METHOD = { ignored: 'there is only one way to pay: USDT on TRON' };
const ABOUT_THE_PAYER = { ignored: 'the page adapts to the browser, and Quittance stores no data about payers' };

const used = <Name extends string>(...names: Name[]) =>
  Object.fromEntries(names.map((name) => [name, 'used'])) as Record<Name, 'used'>;

const JSON_ORDER = used('order_id', 'amount', 'notify_url', 'redirect_url', 'name', 'signature');
const BEPUSDT_ORDER = { ...JSON_ORDER, ...used('fiat', 'timeout') };
const BEPUSDT_TRANSACTION = { ...BEPUSDT_ORDER, ...used('trade_type'), address: ADDRESS, rate: RATE };

/**
 * Every field that requests in each protocol can have, and how it's handled. Any other field is refused, and the error contains its name,
 * because an unknown field could change the meaning of an amount.
 */
export const FORMS = {
  // Plugins for BEpusdt, and for an early version of the successor, also use this form.
  epusdt: { ...BEPUSDT_TRANSACTION, ...used('currency', 'token', 'network') },
  bepusdtTransaction: BEPUSDT_TRANSACTION,
  bepusdtOrder: { ...BEPUSDT_ORDER, ...used('currencies'), reselect: ONE_METHOD },
  bepusdtCancel: used('trade_id', 'signature'),
  gmpay: { ...JSON_ORDER, ...used('pid', 'currency', 'token', 'network', 'payment_type') },
  epay: {
    ...used('pid', 'type', 'out_trade_no', 'notify_url', 'return_url', 'name', 'money', 'param', 'sign', 'sign_type'),
    ...used('currency', 'fiat', 'token', 'network'),
    address: ADDRESS,
    rate: RATE,
    mid: ADDRESS,
    // The payer's browser sends this request. A payer who adds this field to the request must not be able to keep a rate for longer.
    timeout: { ignored: 'the project sets how long an order can wait for payment' },
    channel_id: ONE_METHOD,
    cid: ONE_METHOD,
    clientip: ABOUT_THE_PAYER,
    device: ABOUT_THE_PAYER,
    sitename: { ignored: "the page shows the project's name, which the operator sets" },
  },
  epayQuery: used('act', 'pid', 'key', 'trade_no', 'out_trade_no'),
} satisfies Record<string, Form>;

/** Names that shops use when a single word means "USDT on TRON". */
const BOTH = ['usdt', 'usdt.trc20', 'usdt.tron', 'usdt-trc20', 'usdt_trc20', 'usdttrc20', 'trc20'];
const oneOf = (words: readonly string[]) => (value: string) => words.includes(value);

/** The fields that select a coin, each with a test of whether its value (in lower case) means USDT on TRON. */
const COINS: Readonly<Record<string, (value: string) => boolean>> = {
  trade_type: oneOf(BOTH),
  type: oneOf(BOTH),
  token: oneOf(['usdt']),
  network: oneOf(['tron', 'trc20']),
  currencies: allowsUsdt,
};

/** Reads BEpusdt's `currencies`: `USDT,USDC` allows only these, and `-ETH,-BNB` allows all except these. */
function allowsUsdt(list: string): boolean {
  const words = list.split(',').map((word) => word.trim());
  const allowed = words.filter((word) => !word.startsWith('-'));
  return !words.includes('-usdt') && (allowed.length === 0 || allowed.includes('usdt'));
}

/**
 * Checks a request's fields. Refuses unknown fields, texts that would make the signed text ambiguous, other currencies, and anything except
 * USDT on TRON. Throws a `Refusal` that names the field.
 */
export function checkFields(name: keyof typeof FORMS, fields: Fields, { currency }: Pick<Adapter, 'currency'>): void {
  const form: Form = FORMS[name];
  const isField = (field: string) => Object.hasOwn(form, field);
  for (const [field, value] of fields) {
    const decision = isField(field) ? form[field] : undefined;
    if (decision === undefined) throw malformed(`${show(field)} is not a field of this request: remove it`);
    if (value === '') continue;
    if (typeof decision === 'object' && 'refused' in decision) {
      throw malformed(`${field} is ${show(value)}, but ${decision.refused}: remove it`);
    }
    const started = startedField(value, isField);
    if (started === null) continue;
    throw malformed(
      `${field} contains "&${started}=", so the signed text could be read as containing a second ${started}: remove it from ${field}. In a URL, put ${started} first, right after the question mark`,
    );
  }
  for (const field of ['currency', 'fiat']) {
    const value = fields.get(field) ?? '';
    if (value === '' || value.trim().toUpperCase() === currency) continue;
    throw new Refusal(
      CODES.rate,
      `rate calculation failed: ${field} is ${show(value)}, but this adapter has a rate for ${currency} only: send ${field} ${show(currency)}, or ask the operator for an adapter in that currency`,
    );
  }
  for (const [field, isUsdtOnTron] of Object.entries(COINS)) {
    const value = fields.get(field) ?? '';
    if (value === '' || isUsdtOnTron(value.trim().toLowerCase())) continue;
    throw new Refusal(
      CODES.asset,
      `supported asset not found: ${field} is ${show(value)}, but this adapter accepts only USDT on TRON (usdt.trc20)`,
    );
  }
}

const show = (text: string) => JSON.stringify(text.slice(0, 64));

function malformed(reason: string): Refusal {
  return new Refusal(CODES.fields, `failed to parse request params: ${reason}`);
}

/** No shop sends this many fields. */
const MAX_FIELDS = 50;
const MAX_NAME = 64;
const MAX_VALUE = 2048;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a form's fields from the query and the body. Each field may appear once. */
export function readForm(request: FastifyRequest): Fields {
  const at = request.url.indexOf('?');
  const query = at === -1 ? '' : request.url.slice(at + 1);
  return collect([...new URLSearchParams(query), ...new URLSearchParams(bodyText(request))]);
}

/**
 * Reads a flat JSON object such as `{"order_id":"A-1","amount":42.10,"notify_url":"https://…"}`. Numbers are read as text, never as floats:
 * `42.10` becomes `42.1`, the form that shops sign. Null fields count as absent.
 */
function readFlatJson(request: FastifyRequest): Fields {
  const text = bodyText(request).trim();
  if (!text.startsWith('{') || !text.endsWith('}')) throw malformed('the body is not a single JSON object');
  const fields: [string, string][] = [];
  const member = /\s*("(?:[^"\\]|\\.)*")\s*:\s*(?:("(?:[^"\\]|\\.)*")|(-?[0-9.eE+-]+)|(true|false)|(null))\s*([,}])/suy;
  for (member.lastIndex = 1; ; ) {
    const found = member.exec(text);
    if (found === null) throw malformed('the body is not a JSON object of strings and numbers');
    const [, name = '', value, number, truth, nothing, end] = found;
    // Only BEpusdt's `reselect` is a boolean.
    if (truth !== undefined && name !== '"reselect"')
      throw malformed(`${name.slice(0, MAX_NAME)} is ${truth}, not a string or number`);
    if (nothing === undefined) {
      fields.push([parseText(name), truth ?? (value === undefined ? readNumber(number) : parseText(value))]);
    }
    if (fields.length > MAX_FIELDS) break;
    if (end === '}') {
      if (member.lastIndex !== text.length) throw malformed('there is unexpected content after the JSON object');
      break;
    }
  }
  return collect(fields);
}

/** Reads a body's fields according to its content type. */
export function readBody(request: FastifyRequest): Fields {
  if (/\?./.test(request.url))
    throw malformed('the URL has a query: send all fields in the body, and the URL without "?"');
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase();
  if (type === 'application/json') return readFlatJson(request);
  if (type === 'application/x-www-form-urlencoded') return collect([...new URLSearchParams(bodyText(request))]);
  throw malformed('send the content type application/json or application/x-www-form-urlencoded');
}

function bodyText({ body }: FastifyRequest): string {
  if (!(body instanceof Uint8Array)) return '';
  try {
    return utf8.decode(body);
  } catch {
    throw malformed('the body is not UTF-8');
  }
}

function parseText(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    throw malformed('a string in the JSON object is malformed');
  }
}

function readNumber(text = ''): string {
  if (!/^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text)) {
    throw malformed(`${text.slice(0, 30)} is not a plain decimal number: write it without an exponent`);
  }
  return asNumber(text);
}

function collect(pairs: readonly [string, string][]): Fields {
  const fields = new Map<string, string>();
  if (pairs.length > MAX_FIELDS) throw malformed(`there are more than ${MAX_FIELDS} fields`);
  for (const [name, value] of pairs) {
    const shown = JSON.stringify(name.slice(0, MAX_NAME));
    if (name.length > MAX_NAME || value.length > MAX_VALUE) throw malformed(`the field ${shown} is too long`);
    if (fields.has(name)) throw malformed(`the field ${shown} is sent twice: send it once`);
    if (value.includes('\0') || !value.isWellFormed()) throw malformed(`the field ${shown} contains invalid text`);
    fields.set(name, value);
  }
  return fields;
}
