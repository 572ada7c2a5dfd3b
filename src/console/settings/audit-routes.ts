import { Readable } from 'node:stream';
import { AppError } from '../../domain/errors.ts';
import { writeRows } from '../../operator/export/write-rows.ts';
import { AUDIT_COLUMNS, exportAudit, listAudit, readAuditFilter, verifyAudit } from '../../operator/subjects/audit.ts';
import { givingWay } from '../../runtime/give-way.ts';
import type { ConsoleDeps } from '../page/console-deps.ts';
import { readQuery } from '../page/read-fields.ts';
import type { Answer, Asked, Routes } from '../page/routes.ts';
import { describeProblem } from '../page/show-error.ts';
import { AUDIT_FILTERS, auditPage, verifiedPage } from './audit-page.ts';

/** The audit log, whether it is whole, and its export. */
export function addAuditRoutes({ get }: Routes, deps: ConsoleDeps): void {
  get('/settings/audit', 'listAudit', (asked) => list(deps, asked));
  get('/settings/audit.csv', 'exportAudit', (asked) => send(deps, asked, 'csv'));
  get('/settings/audit.json', 'exportAudit', (asked) => send(deps, asked, 'json'));
  get('/settings/audit/verification', 'verifyAudit', async ({ visit, request }) => {
    const { kept } = verifyAudit.read(readQuery(request, ['project', 'head']), deps.now());
    return verifiedPage(await verifyAudit.run(deps, visit.actor, { kept }), kept !== null);
  });
}

async function list(deps: ConsoleDeps, { visit, request }: Asked): Promise<Answer> {
  const { project: _, before, ...filters } = readQuery(request, ['project', 'before', ...AUDIT_FILTERS]);
  const isFirst = before === undefined;
  try {
    const found = await listAudit.run(deps, visit.actor, readAuditFilter({ ...filters, before }));
    return auditPage({ filters, list: found, problem: null, isFirst });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'INVALID_ARGUMENT') throw error;
    return auditPage({ filters, list: null, problem: describeProblem(error, LABELS), isFirst });
  }
}

const LABELS = { action: 'Action', subject: 'On', by: 'By' };

const TYPES = { csv: 'text/csv; charset=utf-8', json: 'application/json; charset=utf-8' } as const;

async function send(deps: ConsoleDeps, { visit, request, reply }: Asked, format: 'csv' | 'json'): Promise<Answer> {
  const { project: _, ...filters } = readQuery(request, ['project', ...AUDIT_FILTERS]);
  const batches = exportAudit(deps, visit.actor, readAuditFilter(filters));
  reply.type(TYPES[format]).headers({
    'Content-Disposition': `attachment; filename="audit.${format}"`,
    'Cache-Control': 'no-store',
  });
  return { sent: reply.send(Readable.from(givingWay(writeRows(format, { columns: AUDIT_COLUMNS, batches })))) };
}
