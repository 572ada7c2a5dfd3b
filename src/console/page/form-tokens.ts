import { createHmac, timingSafeEqual } from 'node:crypto';
import type { UnixMs } from '../../domain/time.ts';
import { keepNewest } from '../../runtime/keep-newest.ts';

/** As long as a session may rest. */
const MAX_AGE_MS = 12 * 3_600_000;
/** Forms that are remembered as sent. What was forgotten is refused by what it does: each decision names what it was made upon. */
const MAX_SENT = 10_000;

/** Stands for the token in a form that is opened again after signing in. */
export const RESUMED = 'resumed';

type Taken = { kind: 'ok'; id: string } | { kind: 'refused'; reason: string };

/** Tokens that forms carry: each is for one session and one form, and is taken once. Two tabs have two. */
export type FormTokens = {
  issue(session: string, form: string): string;
  take(session: string, form: string, token: string | undefined): Taken;
};

type Deps = { now(): UnixMs; random(bytes: number): Uint8Array; formKey?: Uint8Array };

export function createFormTokens({ now, random, formKey = random(32) }: Deps): FormTokens {
  const sent = new Map<string, true>();
  const sign = (session: string, form: string, head: string) =>
    createHmac('sha256', formKey)
      .update(JSON.stringify([session, form, head]))
      .digest();
  return {
    issue: (session, form) => {
      const head = `${Buffer.from(random(12)).toString('base64url')}.${now().toString(36)}`;
      return `${head}.${sign(session, form, head).toString('base64url')}`;
    },
    take: (session, form, token = '') => {
      if (token === RESUMED)
        return {
          kind: 'refused',
          reason: 'you are signed in again, but the form was not sent: check your input and send it',
        };
      const [id = '', time = '', mark = ''] = token.split('.');
      const [expected, given] = [sign(session, form, `${id}.${time}`), Buffer.from(mark, 'base64url')];
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        return { kind: 'refused', reason: 'this form belongs to another session: open the page again' };
      }
      if (now() - Number.parseInt(time, 36) > MAX_AGE_MS) {
        return { kind: 'refused', reason: 'this form is too old: open the page again' };
      }
      if (sent.has(id)) return { kind: 'refused', reason: 'this form was already sent, and was processed then' };
      keepNewest(sent, id, true, MAX_SENT);
      return { kind: 'ok', id };
    },
  };
}
