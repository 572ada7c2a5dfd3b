import type { LoggedRequest } from '../../core/store/access/requests.ts';
import type { Problem } from '../web/problem.ts';

/** The request log fields that explain why a request was refused. */
type Refusal = Pick<LoggedRequest, 'errors' | 'body'>;

const MAX_ERRORS = 10;
const MAX_MEMBERS = 30;
const MAX_DEPTH = 4;
/** Long enough to show a misspelled member, but too short for a secret that was sent as a name. Quittance's own secrets are longer. */
const NAME = /^[A-Za-z_][\w-]{0,23}$/;
const CODE = /^[A-Z_]{1,40}$/;

/** Returns a request's refused fields with their codes, and the shape of its body. Neither contains values from the body. */
export function describeRefusal({ extensions }: Problem, body: unknown): Refusal {
  const errors = errorsOf(extensions).slice(0, MAX_ERRORS);
  return {
    ...(errors.length > 0 && { errors }),
    ...(body instanceof Uint8Array && body.length > 0 && { body: describeBody(body) }),
  };
}

/** A conflict says which key was used before, and which members differ from the earlier request. */
function errorsOf({ errors, conflict, fields }: Problem['extensions']): { field: string; code: string }[] {
  const given = [
    ...(Array.isArray(errors) ? errors : []),
    ...(conflict === undefined ? [] : [{ field: conflict, code: 'USED_BEFORE' }]),
    ...(Array.isArray(fields) ? fields.map((field) => ({ field, code: 'DIFFERS' })) : []),
  ];
  return given.map(({ field, code }) => ({
    field: String(field).split('.').map(hideName).join('.'),
    code: CODE.test(code) ? code : '…',
  }));
}

/** Hides a name that could be a secret. `events[0]` is the first item of a list; the empty name stands for the whole body. */
function hideName(name: string): string {
  return name === '' || NAME.test(name.replace(/\[\d{1,5}\]$/, '')) || /^\d{1,5}$/.test(name) ? name : '…';
}

/** Returns the names and types in a body, such as `{amount: number, metadata: {cart: string}}`. */
export function describeBody(body: Uint8Array): string {
  try {
    return shapeOf(JSON.parse(Buffer.from(body).toString()), { left: MAX_MEMBERS }, 0);
  } catch {
    return `not JSON, ${body.length} bytes`;
  }
}

function shapeOf(value: unknown, members: { left: number }, depth: number): string {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const shown: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (members.left === 0 || depth === MAX_DEPTH) {
      shown.push('…');
      break;
    }
    members.left -= 1;
    const shape = shapeOf(member, members, depth + 1);
    shown.push(Array.isArray(value) ? shape : `${hideName(name)}: ${shape}`);
  }
  return open + shown.join(', ') + close;
}
