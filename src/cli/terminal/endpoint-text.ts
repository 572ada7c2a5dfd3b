import { formatFields, isoMinute, isoSecond } from '../../operator/command-text.ts';
import { writeText } from '../../operator/command-words.ts';
import { quoteWhole } from '../../operator/input/clip.ts';
import type { EndpointView, TestedEndpointView } from '../../operator/webhooks/views.ts';

/** The status of an endpoint in words. */
export function statusText({ status, failingSince, pausedUntil, disabledReason }: EndpointView): string {
  if (status === 'disabled') return `disabled: ${disabledReason ?? 'no reason was noted'}`;
  const since = failingSince === null ? '' : `failing since ${isoMinute(failingSince)}`;
  if (pausedUntil === null) return since || 'active';
  return `paused until ${isoSecond(pausedUntil)}${since && `, ${since}`}`;
}

/** Lists the problems of a receiver, the most telling first. Empty if there is none. */
export function diagnosisText(diagnoses: TestedEndpointView['diagnosis']): string {
  if (diagnoses.length === 0) return '';
  const parts = diagnoses.map(({ code, certainty, problem, fix }, index) =>
    formatFields([
      [`${index + 1}. ${code}, ${certainty}`, problem],
      ['   to do', writeText(fix)],
    ]),
  );
  return ['WHAT IS WRONG', ...parts].join('\n');
}

/** The beginning of an answer in quotes, for a terminal; --json has all of it. Empty for none. */
export function answerText(answer: string | null, limit: number): string {
  if (answer === null || answer === '') return '';
  return quoteWhole(answer.length > limit ? `${answer.slice(0, limit)}…` : answer);
}
