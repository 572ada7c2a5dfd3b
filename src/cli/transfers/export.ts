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
