import { Message } from '../../../core/domain/message.ts';

/** The media type that requests an outcome instead of its view. */
export const OUTCOME_TYPE = 'application/vnd.quittance.outcome+json';

/**
 * Writes an outcome as JSON that restores the same value. Texts keep field names and next steps as data so that the receiving interface can
 * put them in its own terms. `[1n, say`…`]` becomes `[{"~bigint":"1"},{"~message":[…]}]`.
 */
export function writeOutcome(outcome: object): string {
  return JSON.stringify(outcome, (_key, value: unknown) => {
    if (typeof value === 'bigint') return { '~bigint': String(value) };
    if (value instanceof Message) return { '~message': value.parts };
    return value;
  });
}

/** Throws a SyntaxError if the text isn't JSON. */
export function readOutcome(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    if ('~bigint' in value) return BigInt(String(value['~bigint']));
    if ('~message' in value) return new Message(value['~message'] as Message['parts']);
    return value;
  });
}
