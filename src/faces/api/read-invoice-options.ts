import { lineProblem, readReturnUrl } from '../../core/domain/brand/brand.ts';
import type { InvoiceOptions } from '../../core/domain/invoice-options.ts';
import { isLoopbackLink } from '../../core/domain/loopback.ts';
import type { Network } from '../../core/domain/network.ts';
import type { FieldError } from '../web/problem.ts';
import { fieldError, show, typeOf } from './field-errors.ts';

const MAX_DESCRIPTION = 140;
const [MAX_PAIRS, MAX_METADATA_BYTES] = [20, 2048];
const KEY = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,39}$/;
/** The shortest invoice lifetime, for every project. */
const LEAST_SECONDS = 300;

/** Reads the optional fields of `POST /v1/invoices`. Adds problems that don't depend on the project to `errors`. */
export function readInvoiceOptions(value: Record<string, unknown>, errors: FieldError[]): InvoiceOptions {
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
export type OptionRule = { network: Network; invoiceLifetimeMs: number; returnOrigins: readonly string[] };

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
