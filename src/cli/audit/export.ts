import { AUDIT_COLUMNS, exportAudit, readAuditFilter } from '../../operator/subjects/audit.ts';
import { exportRows, type Output, readFormat } from '../terminal/export-rows.ts';
import { cliActor } from '../terminal/operator.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { withDatabase } from '../terminal/with-database.ts';

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
