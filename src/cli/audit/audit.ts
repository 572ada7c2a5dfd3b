import { AUDIT_COLUMNS, exportAudit, readAuditFilter } from '../../operator/audit/list-audit.ts';
import { listAuditOperation, verifyAuditOperation } from '../../operator/audit/operations.ts';
import type { AuditEntryView } from '../../operator/audit/views.ts';
import { EXIT } from '../terminal/describe-error.ts';
import { exportRows, type Output, readFormat } from '../terminal/export-rows.ts';
import { cliActor } from '../terminal/operator.ts';
import { runOperation } from '../terminal/run-operation.ts';
import { type Column, tableOf } from '../terminal/table.ts';
import { formatFields, type Result, type Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

type Filter = Parameters<typeof readAuditFilter>[0];

const ENTRIES: readonly Column<AuditEntryView>[] = [
  ['NUMBER', ({ seq, sound }) => (sound ? String(seq) : `${seq} NOT AS SEALED`)],
  ['AT', ({ at }) => at],
  ['WHO', ({ actor }) => actor.name],
  ['BY', ({ actor }) => actor.kind],
  ['ACTION', ({ action }) => action],
  ['ON', ({ subject }) => subject],
  ['DETAIL', ({ detail }) => JSON.stringify(detail)],
];

export async function printAudit(terminal: Terminal, input: Filter): Promise<Result> {
  const data = await runOperation(terminal, listAuditOperation, input);
  const next = data.next === null ? {} : { next: `older ones: add --before ${data.next}` };
  return { data, text: tableOf(ENTRIES, data.data), ...next };
}

export async function printVerifiedAudit(terminal: Terminal, { head }: { head?: string | undefined }): Promise<Result> {
  const data = await runOperation(terminal, verifyAuditOperation, { head });
  return {
    data,
    text: formatFields([
      ['entries', String(data.entries)],
      ['head', data.head && `${data.head.seq}:${data.head.hash}`],
      ['older than the seals', data.unsealed === 0 ? null : `${data.unsealed}: quittance ledger seal`],
      ...data.accepted.map(({ message }) => ['acknowledged', message] as const),
      ['good', data.problem === null ? 'yes' : `NO: ${data.problem.message}`],
    ]),
    ...(data.good
      ? {
          next: 'keep the head in another place: "quittance audit verify --head …" shows later whether the log was rewritten',
        }
      : { exitCode: EXIT.failed }),
  };
}

export async function printAuditExport(
  terminal: Terminal,
  { format: asked, output, ...input }: Filter & Output,
): Promise<Result | null> {
  const format = readFormat({ format: asked, output }, terminal.json);
  const filter = readAuditFilter(input);
  return withDatabase(terminal, async (deps) => {
    const batches = exportAudit(deps, cliActor(terminal), filter);
    return exportRows(
      terminal,
      { format, output },
      { columns: AUDIT_COLUMNS, batches, name: 'entry', plural: 'entries' },
    );
  });
}
