import { lineProblem, readReturnUrl } from '../../core/domain/brand/brand.ts';
import { type InvoiceOptions, OPTION_NAMES } from '../../core/domain/invoice-options.ts';
import { formatAmount, type MicroUsdt, parseAmount } from '../../core/domain/money.ts';
import { type Network, WIRE_ASSET, WIRE_NETWORK } from '../../core/domain/network.ts';
import type { Price } from '../../core/domain/price.ts';
import { isLoopbackLink } from '../../core/domain/url.ts';
import { readJsonObject } from '../web/json-body.ts';
import { type FieldError, Problem } from '../web/problem.ts';

/** `requestedMicro` is `null` if the request has a price instead, which is then in `options`. */
export type CreateFields = { requestedMicro: MicroUsdt | null; externalId: string; options: InvoiceOptions };

const FIELDS = ['amount', 'asset', 'network', 'externalId'] as const;
const KNOWN: readonly string[] = [...FIELDS, ...OPTION_NAMES];
const MAX_EXTERNAL_ID = 200;
/** A body of 16 KiB could contain thousands of invalid fields, but this many errors are enough to learn from. */
const MAX_ERRORS = 50;

/**
 * Reads the body of `POST /v1/invoices`, such as `{"amount":"25.00","asset":"USDT","network":"TRON","externalId":"order-1"}`. Throws one
 * problem with all field errors. Its code reports an unsupported asset or network only if everything else is valid.
 */
export function readCreateInput(body: Uint8Array): CreateFields {
  const read = readJsonObject(body);
  if (read.kind === 'invalid-json') throw new Problem('INVALID_JSON', read.detail);
  if (read.kind === 'not-an-object') {
    const errors: FieldError[] = [{ field: '', code: 'WRONG_TYPE', message: read.detail }];
    throw new Problem('INVALID_REQUEST', read.detail, { extensions: { errors } });
  }
  const { value, duplicateKeys } = read;
  const errors: FieldError[] = [
    ...duplicateKeys.map((key) => fieldError(key, 'DUPLICATE_FIELD', 'occurs more than once; send it once')),
    ...Object.keys(value)
      .filter((key) => !KNOWN.includes(key))
      .map((key) => fieldError(key, 'UNKNOWN_FIELD', `is not known; the fields are ${KNOWN.join(', ')}`)),
  ];
  const price = Object.hasOwn(value, 'price') ? readPrice(value, errors) : null;
  const wanted = FIELDS.filter((field) => field !== 'amount' || price === null || Object.hasOwn(value, field));
  const texts = Object.fromEntries(wanted.map((field) => [field, readText(value, field, errors)]));
  const requestedMicro = readAmount(texts['amount'], errors);
  const externalId = readExternalId(texts['externalId'], errors);
  const options = { ...readInvoiceOptions(value, errors), ...(price?.kind === 'ok' && { price: price.price }) };
  const unsupported = findUnsupported(texts);
  if (errors.length > 0 || (requestedMicro === null && price === null) || externalId === null) {
    throw invalid([...errors, ...unsupported.map(({ error }) => error)]);
  }
  refuseUnsupported(unsupported);
  return { requestedMicro, externalId, options };
}

function readText(value: Record<string, unknown>, field: string, errors: FieldError[], prefix = '', example = '') {
  if (!Object.hasOwn(value, field)) {
    errors.push(fieldError(prefix + field, 'REQUIRED', `is missing${example}`));
    return undefined;
  }
  const seen = value[field];
  if (typeof seen === 'string') return seen;
  errors.push(fieldError(prefix + field, 'WRONG_TYPE', `must be a string${example}, not ${typeOf(seen)}`));
  return undefined;
}

type ReadPrice = { kind: 'ok'; price: Price } | { kind: 'refused' };

/** Reads the price that can be sent instead of an amount: `{"amount":"19.99","currency":"EUR"}`. */
function readPrice(input: Record<string, unknown>, errors: FieldError[]): ReadPrice {
  const before = errors.length;
  const { price } = input;
  if (Object.hasOwn(input, 'amount')) {
    errors.push(fieldError('price', 'CONFLICTS', 'cannot be combined with amount: send only one of these fields'));
  }
  if (typeof price !== 'object' || price === null || Array.isArray(price)) {
    errors.push(
      fieldError('price', 'WRONG_TYPE', `must be an object such as ${EXAMPLE_OF_PRICE}, not ${typeOf(price)}`),
    );
    return { kind: 'refused' };
  }
  const members = price as Record<string, unknown>;
  for (const name of Object.keys(members).filter((each) => each !== 'amount' && each !== 'currency')) {
    errors.push(fieldError(`price.${name}`, 'UNKNOWN_FIELD', 'is not known; the fields are amount, currency'));
  }
  const text = readText(members, 'amount', errors, 'price.', ', such as "19.99"');
  const amountMicro = readAmount(text, errors, 'price.amount');
  const currency = readText(members, 'currency', errors, 'price.', ', such as "EUR"');
  if (currency !== undefined && !CURRENCY.test(currency)) {
    const bound = `must be 3 to 5 capital letters, such as EUR, not ${show(currency)}`;
    errors.push(fieldError('price.currency', 'WRONG_CHARACTER', bound));
  }
  if (amountMicro === null || currency === undefined || errors.length > before) return { kind: 'refused' };
  return { kind: 'ok', price: { amount: formatAmount(amountMicro), currency } };
}

const EXAMPLE_OF_PRICE = '{"amount": "19.99", "currency": "EUR"}';
const CURRENCY = /^[A-Z]{3,5}$/;

function readAmount(text: string | undefined, errors: FieldError[], field = 'amount'): MicroUsdt | null {
  if (text === undefined) return null;
  const parsed = parseAmount(text);
  if (parsed.kind === 'ok') return parsed.amountMicro;
  errors.push(fieldError(field, parsed.code, `${parsed.reason}, not ${show(text)}`));
  return null;
}

function readExternalId(text: string | undefined, errors: FieldError[]): string | null {
  if (text === undefined) return null;
  const length = [...text].length;
  if (length < 1 || length > MAX_EXTERNAL_ID) {
    errors.push(
      fieldError('externalId', 'WRONG_LENGTH', `must have 1 to ${MAX_EXTERNAL_ID} characters, not ${length}`),
    );
    return null;
  }
  // PostgreSQL can't store either of these, and no order id needs them.
  if (text.includes('\0') || !text.isWellFormed()) {
    errors.push(fieldError('externalId', 'WRONG_CHARACTER', 'must not contain U+0000 or an unpaired surrogate'));
    return null;
  }
  return text;
}

type Unsupported = {
  code: 'UNSUPPORTED_ASSET' | 'UNSUPPORTED_NETWORK';
  supported: string;
  detail: string;
  error: FieldError;
};

function findUnsupported(texts: Record<string, string | undefined>): Unsupported[] {
  const fields = [
    { field: 'asset', code: 'UNSUPPORTED_ASSET', supported: WIRE_ASSET },
    { field: 'network', code: 'UNSUPPORTED_NETWORK', supported: WIRE_NETWORK },
  ] as const;
  return fields.flatMap(({ field, code, supported }) => {
    const seen = texts[field];
    if (seen === undefined || seen === supported) return [];
    const detail = `The ${field} ${show(seen)} is not supported; use ${supported}.`;
    return [{ code, supported, detail, error: fieldError(field, code, `must be one of: ${supported}`) }];
  });
}

/** Throws the problem for the first field, with the errors for all fields. */
function refuseUnsupported(unsupported: Unsupported[]): void {
  const [first] = unsupported;
  if (first === undefined) return;
  const detail = unsupported.map((each) => each.detail).join(' ');
  const errors = unsupported.map(({ error }) => error);
  throw new Problem(first.code, detail, { extensions: { supported: [first.supported], errors } });
}

/** Returns the problem for invalid fields, with at most `MAX_ERRORS` of their errors. */
export function invalid(errors: FieldError[]): Problem {
  const shown = errors.slice(0, MAX_ERRORS);
  const detail = `${errors.length === 1 ? 'One field is' : `${errors.length} fields are`} not valid: ${shown
    .slice(0, 5)
    .map(({ field, message }) => `${field} ${message}`)
    .join('; ')}.`;
  return new Problem('INVALID_REQUEST', detail, { extensions: { errors: shown } });
}

const MAX_DESCRIPTION = 140;
const [MAX_PAIRS, MAX_METADATA_BYTES] = [20, 2048];
const KEY = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
/** The shortest invoice lifetime, for every project. */
const LEAST_SECONDS = 300;

/** Reads the optional fields of `POST /v1/invoices`. Adds problems that don't depend on the project to `errors`. */
function readInvoiceOptions(value: Record<string, unknown>, errors: FieldError[]): InvoiceOptions {
  const options: InvoiceOptions = {};
  const given = (name: string) => Object.hasOwn(value, name);
  if (given('returnUrl')) options.returnUrl = readReturn(value['returnUrl'], errors);
  if (given('expiresInSeconds')) options.expiresInSeconds = readSeconds(value['expiresInSeconds'], errors);
  if (given('description')) options.description = readDescription(value['description'], errors);
  if (given('metadata')) options.metadata = readMetadata(value['metadata'], errors);
  return options;
}

function readReturn(value: unknown, errors: FieldError[]): string {
  if (typeof value !== 'string') return refuse(errors, wrongType('returnUrl', 'a string', value)) ?? '';
  const read = readReturnUrl(value);
  if (read.kind === 'ok') return read.url;
  return refuse(errors, fieldError('returnUrl', 'WRONG_URL', read.reason)) ?? '';
}

function readSeconds(value: unknown, errors: FieldError[]): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  const error =
    typeof value === 'number'
      ? fieldError('expiresInSeconds', 'OUT_OF_RANGE', `must be a whole number of seconds, such as 900, not ${value}`)
      : wrongType('expiresInSeconds', 'a number, such as 900', value);
  return refuse(errors, error) ?? 0;
}

function readDescription(value: unknown, errors: FieldError[]): string {
  if (typeof value !== 'string') return refuse(errors, wrongType('description', 'a string', value)) ?? '';
  const problem = lineProblem(value, { most: MAX_DESCRIPTION, give: 'the name of the goods' });
  if (problem === null && !holdsAddress(value)) return value;
  if (problem === null) {
    const message =
      'contains text that looks like an address: remove it, because payers must see only the payment address';
    return refuse(errors, fieldError('description', 'HOLDS_ADDRESS', message)) ?? '';
  }
  return refuse(errors, fieldError('description', problem.code, problem.reason)) ?? '';
}

/**
 * Whether the text contains a TRON or Ethereum address. The text may have been written by a customer, or by a thief who has a stolen key.
 */
function holdsAddress(text: string): boolean {
  const shown = text.normalize('NFKC').replaceAll(/\p{Cf}/gu, '');
  return /\bT[1-9A-HJ-NP-Za-km-z]{33}\b|\b0x[0-9a-fA-F]{40}\b/.test(shown);
}

function readMetadata(value: unknown, errors: FieldError[]): Record<string, string> {
  const add = (code: string, message: string) => refuse(errors, fieldError('metadata', code, message)) ?? {};
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    refuse(errors, wrongType('metadata', 'an object of strings, such as {"cart": "c-17"}', value));
    return {};
  }
  const pairs = Object.entries(value);
  if (pairs.length > MAX_PAIRS) return add('WRONG_LENGTH', `has ${pairs.length} pairs: use at most ${MAX_PAIRS}`);
  for (const [key, text] of pairs) {
    if (!KEY.test(key)) {
      return add(
        'WRONG_KEY',
        `has the key ${show(key)}: a key has 1 to 40 letters, digits, "_", "." or "-", and begins with a letter or digit`,
      );
    }
    if (typeof text !== 'string') {
      return add(
        'WRONG_TYPE',
        `has ${typeOf(text)} as the value of ${show(key)}: each value must be a string, such as "c-17"`,
      );
    }
    if (text.includes('\0') || !text.isWellFormed()) {
      return add('WRONG_CHARACTER', `contains U+0000 or an unpaired surrogate in ${show(key)}: remove it`);
    }
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > MAX_METADATA_BYTES) {
    return add('WRONG_LENGTH', `has ${bytes} bytes as JSON: use at most ${MAX_METADATA_BYTES}`);
  }
  return Object.fromEntries(pairs) as Record<string, string>;
}

function wrongType(field: string, wanted: string, value: unknown): FieldError {
  return fieldError(field, 'WRONG_TYPE', `must be ${wanted}, not ${typeOf(value)}`);
}

function refuse(errors: FieldError[], error: FieldError): null {
  errors.push(error);
  return null;
}

/** The limits for the key's project: the maximum lifetime, and the sites that payers may be sent to. */
type OptionRule = { network: Network; invoiceLifetimeMs: number; returnOrigins: readonly string[] };

/** Returns the problems with the options for this project. A repeat of an earlier request succeeds despite these problems. */
export function optionErrors({ returnUrl, expiresInSeconds }: InvoiceOptions, rule: OptionRule): FieldError[] {
  const errors: FieldError[] = [];
  const most = rule.invoiceLifetimeMs / 1000;
  if (expiresInSeconds !== undefined && (expiresInSeconds < LEAST_SECONDS || expiresInSeconds > most)) {
    const message = `is ${expiresInSeconds}, but this project allows ${LEAST_SECONDS} to ${most} seconds; the operator can raise the limit with: quittance project update --lifetime`;
    errors.push(fieldError('expiresInSeconds', 'OUT_OF_RANGE', message));
  }
  if (returnUrl !== undefined && !isAllowed(new URL(returnUrl), rule)) {
    const sites = rule.returnOrigins.length === 0 ? 'it allows none' : rule.returnOrigins.join(', ');
    const message = `must lead to a site that the project allows (${sites}); the operator can allow a site with: quittance project update --return-url, or --embed-origins`;
    errors.push(fieldError('returnUrl', 'NOT_ALLOWED', message));
  }
  return errors;
}

/** On a local network, the payer's browser is on this machine. */
function isAllowed({ origin, hostname }: URL, { network, returnOrigins }: OptionRule): boolean {
  return returnOrigins.includes(origin) || (network === 'devnet' && isLoopbackLink(hostname));
}

const SHOWN_CHARACTERS = 60;

function fieldError(field: string, code: string, message: string): FieldError {
  return { field: clip(field), code, message };
}

/** Quotes input for an error message, shortened. */
function show(text: string): string {
  return JSON.stringify(clip(text));
}

/** Returns the type of a JSON value, in words. */
function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
}

function clip(text: string): string {
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
