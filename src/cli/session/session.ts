import { endSession, listSessions } from '../../operator/people/list-sessions.ts';
import type { SessionView } from '../../operator/people/views.ts';
import { cliActor } from '../terminal/operator.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

const SESSIONS: readonly Column<SessionView>[] = [
  ['SESSION', ({ sessionId }) => sessionId],
  ['LOGIN', ({ login }) => login],
  ['ROLE', ({ role }) => role],
  ['BY', ({ proof }) => proof],
  ['SINCE', ({ createdAt }) => createdAt],
  ['LAST SEEN', ({ seenAt }) => seenAt],
  ['ENDS', ({ endsAt }) => endsAt],
  ['FROM', ({ origin }) => origin],
  ['WITH', ({ userAgent }) => userAgent ?? ''],
];

export async function printSessions(terminal: Terminal, input: { person?: string | undefined }): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => listSessions(deps, cliActor(terminal), input));
  return {
    data,
    text: tableOf(SESSIONS, data.data),
    ...(data.data.length === 0 ? { next: 'nobody is signed in' } : {}),
  };
}

export async function printEndedSession(
  terminal: Terminal,
  { by, sessionId }: { sessionId: string; by?: string | undefined },
): Promise<Result> {
  const data = await withDatabase(terminal, (deps) => endSession(deps, cliActor(terminal, by), { sessionId }));
  return { data, text: `ended ${data.sessionId}` };
}
