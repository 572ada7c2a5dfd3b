import type { ChannelKind } from '../../store/outbox/notify-channels.ts';
import { CHANNEL_KINDS } from '../../store/outbox/notify-channels.ts';
import { FieldError } from '../input/field-error.ts';
import { nameProblem } from '../input/name-problem.ts';
import { readChoice } from '../input/read-choice.ts';
import { type GivenTarget, readTarget } from './read-target.ts';
import { readTimes } from './read-times.ts';

type Given = GivenTarget & {
  kind: string;
  name: string | undefined;
  quiet: string | undefined;
  summary: string | undefined;
  timeZone: string | undefined;
};

/** Which fields say where a channel of each kind leads. */
export const CHANNEL_FIELDS: Readonly<Record<ChannelKind, { needs: readonly Field[]; takes: readonly Field[] }>> = {
  email: { needs: ['url', 'from', 'to'], takes: [] },
  telegram: { needs: ['token', 'chat'], takes: ['url'] },
  slack: { needs: ['url'], takes: [] },
  discord: { needs: ['url'], takes: [] },
  ntfy: { needs: ['url'], takes: ['token'] },
  webhook: { needs: ['url'], takes: ['secret'] },
};
const ALL_FIELDS = ['url', 'from', 'to', 'token', 'chat', 'secret'] as const;
type Field = (typeof ALL_FIELDS)[number];

/** Reads what a channel is to be. Errors: `INVALID_ARGUMENT`, without anything secret. */
export function readNewChannel({ kind: text, name: givenName, quiet, summary, timeZone, ...given }: Given) {
  const kind = readChoice('kind', text, CHANNEL_KINDS);
  if (kind === null) throw new FieldError('kind', `is missing: choose ${CHANNEL_KINDS.join(', ')}`);
  const { needs, takes } = CHANNEL_FIELDS[kind];
  for (const field of ALL_FIELDS) {
    const isGiven = given[field] !== undefined && given[field].length > 0;
    if (needs.includes(field) && !isGiven)
      throw new FieldError(field, `is missing: a channel of the kind ${kind} needs it`);
    if (isGiven && !needs.includes(field) && !takes.includes(field))
      throw new FieldError(field, `is nothing that a channel of the kind ${kind} takes: leave it out`);
  }
  const name = givenName?.trim() ?? kind;
  const problem = nameProblem(name);
  if (problem !== null) throw new FieldError('name', problem);
  return { kind, name, ...readTarget(kind, given), times: readTimes({ quiet, summary, timeZone }) };
}
