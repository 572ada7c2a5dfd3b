import type { FastifyRequest } from 'fastify';
import { AppError } from '../../domain/errors.ts';
import { clip, FieldError } from '../../operator/input/problems.ts';

/** The values of fields that were filled in. */
export type Fields<Name extends string = string> = Partial<Record<Name, string>>;

/** The longest that a field takes, of a query and of a form: a thousand addresses, or a logo in base64. */
const MAX_CHARACTERS = { query: 4000, form: 44_000 };
const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

/** The query of a request. Errors: `INVALID_ARGUMENT`. */
export function readQuery<const Name extends string>({ url }: FastifyRequest, names: readonly Name[]): Fields<Name> {
  const start = url.indexOf('?');
  return readFields(new URLSearchParams(start === -1 ? '' : url.slice(start)), names, MAX_CHARACTERS.query);
}

/** The form in the body of a request; `names` `null`: of any fields. Errors: `INVALID_ARGUMENT`. */
export function readForm<const Name extends string>(
  { headers, body }: FastifyRequest,
  names: readonly Name[] | null,
): Fields<Name> {
  if (!FORM.test(headers['content-type'] ?? '') || !Buffer.isBuffer(body)) {
    throw new AppError('INVALID_ARGUMENT', 'this is not a form of the console: open the page and send it again');
  }
  return readFields(new URLSearchParams(body.toString('utf8')), names, MAX_CHARACTERS.form);
}

function readFields<Name extends string>(
  given: URLSearchParams,
  names: readonly Name[] | null,
  most: number,
): Fields<Name> {
  const fields: Fields<Name> = {};
  for (const name of new Set(given.keys())) {
    const known = names === null ? (name as Name) : names.find((each) => each === name);
    if (known === undefined) {
      throw new AppError(
        'INVALID_ARGUMENT',
        `${clip(name)} is not a field of this form; the fields are ${names?.join(', ')}`,
      );
    }
    const [value = '', ...others] = given.getAll(name);
    if (others.length > 0) throw new FieldError(name, `was given ${others.length + 1} times: give it once`);
    if (value.length > most) throw new FieldError(name, `has ${value.length} characters: that is too long`);
    if (value.includes('\0')) throw new FieldError(name, 'contains a character that cannot be stored');
    // A form sends all of its fields.
    if (value.trim() !== '') fields[known] = value;
  }
  return fields;
}
