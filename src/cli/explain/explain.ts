import { toIso } from '../../core/domain/time.ts';
import type { TimelineEntry } from '../../core/domain/timeline.ts';
import { formatFields, writeText } from '../../faces/operator/command-words.ts';
import { explainSubjectOperation } from '../../faces/operator/explain/explain.ts';
import { describeStep, type Explanation, printableText, toView } from '../../faces/operator/explain/explanation.ts';
import { printable } from '../../faces/operator/input/problems.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { runOperation } from '../terminal/run-operation.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';

/** Exits with 3 if the ledger doesn't know the transaction, although that is a valid answer. */
export async function explain(
  terminal: Terminal,
  text: string,
  { project: projectId }: { project?: string | undefined },
): Promise<Result> {
  const explanation = await runOperation(terminal, explainSubjectOperation, { text, projectId });
  const { isUnknown, next } = explanation;
  return {
    data: toView(explanation),
    text: present(explanation),
    ...(next.length === 0 ? {} : { next: next.map((step) => writeText(describeStep(step))).join('\n') }),
    ...(isUnknown === true ? { exitCode: EXIT.notFound } : {}),
  };
}

function present({ fields, timeline, omissions, verdict }: Explanation): string {
  const parts = [
    verdict.map((text) => writeText(printableText(text))).join('\n'),
    formatFields(fields),
    timeline.map(formatEntry).join('\n'),
    omissions.map(({ what, shown, total }) => `not shown: ${total - shown} more of ${total} ${what}`).join('\n'),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** The width of the longest kind. */
const KIND_WIDTH = 11;
const INDENT = ' '.repeat('2026-09-01T12:00:00.000Z'.length + 2 + KIND_WIDTH + 2);

function formatEntry({ at, kind, text, details }: TimelineEntry): string {
  const first = `${toIso(at)}  ${kind.padEnd(KIND_WIDTH)}  ${printable(text)}`;
  return [first, ...details.map((detail) => `${INDENT}${printable(detail)}`)].join('\n');
}
