import { AUDIT_COLUMNS, exportAudit, readAuditFilter } from '../../operator/subjects/audit.ts';
import { EXPORT_COLUMNS, exportTransfers, readSelection } from '../../operator/subjects/transfer-export.ts';
import { exportRows, type Output, readFormat } from '../terminal/export-rows.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

type ExportInput = Parameters<typeof readSelection>[0] & Output & { projectId: string | undefined };

/** Writes the ledger of a project to a file, or to standard output: then `null`. */
export async function printExport(terminal: Terminal, { projectId, ...input }: ExportInput): Promise<Result | null> {
  const format = readFormat(input, terminal.json);
  const selection = readSelection(input);
  return withDatabase(terminal, async (deps) => {
    const batches = await exportTransfers(deps, cliActor(terminal), { projectId, ...selection });
    const rows = { columns: EXPORT_COLUMNS, batches, name: 'transfer', plural: 'transfers' };
    return exportRows(terminal, { format, output: input.output }, rows);
  });
}

type Filter = Parameters<typeof readAuditFilter>[0];

export async function printAuditExport(
  terminal: Terminal,
  { format: asked, output, ...input }: Filter & Output,
): Promise<Result | null> {
  const format = readFormat({ format: asked, output }, terminal.json);
  const filter = readAuditFilter(input);
  return withDatabase(terminal, async (deps) => {
    const batches = exportAudit(deps, cliActor(terminal), filter);
    const rows = { columns: AUDIT_COLUMNS, batches, name: 'entry', plural: 'entries' };
    return exportRows(terminal, { format, output }, rows);
  });
}
