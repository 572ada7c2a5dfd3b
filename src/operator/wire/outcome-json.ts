import { Message } from '../../domain/message.ts';

/** The media type that asks for an outcome in place of its view. */
export const OUTCOME_TYPE = 'application/vnd.quittance.outcome+json';

/**
 * What an operation returns as JSON that gives the same back: texts keep the names of fields and next steps as data, so that the face at
 * the other end words them. `[1n, say`…`]` is `[{"~bigint":"1"},{"~message":[…]}]`.
 */
export function writeOutcome(outcome: object): string {
  return JSON.stringify(outcome, (_key, value: unknown) => {
    if (typeof value === 'bigint') return { '~bigint': String(value) };
    if (value instanceof Message) return { '~message': value.parts };
    return value;
  });
}

/** Throws a SyntaxError for what is no JSON. */
export function readOutcome(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    if ('~bigint' in value) return BigInt(String(value['~bigint']));
    if ('~message' in value) return new Message(value['~message'] as Message['parts']);
    return value;
  });
}
