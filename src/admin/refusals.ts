import { AppError, type ErrorCode } from '../domain/errors.ts';
import { writeText } from '../operator/command-words.ts';

/** How an operation that was refused is answered; any other code is 409: it cannot be done as things stand. */
const STATUSES: Readonly<Partial<Record<ErrorCode, number>>> = {
  ...{ USAGE: 400, INVALID_ARGUMENT: 400, FORBIDDEN: 403, NOT_FOUND: 404 },
  ...{ NO_NODE: 503, NODE_REFUSED: 503, NODES_DISAGREE: 503, SANDBOX_NOT_RUNNING: 503 },
};
const OTHER_STATUS = 409;
export const REFUSAL_STATUSES: readonly number[] = [...new Set([...Object.values(STATUSES), OTHER_STATUS])];

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  409: 'Conflict',
  503: 'Service Unavailable',
};

/** Refusals that every part of the server answers alike. */
const OF_THE_SERVER: readonly string[] = [
  'DATABASE_UNAVAILABLE',
  'ADDRESS_DAMAGED',
  'ADDRESS_NOT_VOUCHED',
  'ROW_CHANGED',
];

/**
 * The answer (RFC 9457) to an operation that was refused, with the words of the command line, which can run it too; `null` for an error
 * that is none of an operation.
 */
export function refusalOf(error: unknown, requestId: string): { status: number; body: string } | null {
  const isOfKeys = error instanceof Error && error.name === 'KeyRingError' && 'code' in error;
  if (!isOfKeys && (!(error instanceof AppError) || OF_THE_SERVER.includes(error.code))) return null;
  const code = String(error.code);
  const status = STATUSES[code as ErrorCode] ?? OTHER_STATUS;
  const { text, problems } = error instanceof AppError ? error : { text: error.message, problems: [] };
  const errors = problems.map(({ subject, message }) => ({ subject: writeText(subject), message: writeText(message) }));
  const body = {
    ...{ type: 'about:blank', title: TITLES[status] ?? '', status, code, detail: writeText(text), requestId },
    ...(errors.length === 0 ? {} : { errors }),
  };
  return { status, body: JSON.stringify(body) };
}
