import { Type } from '../../runtime/type.ts';
import { Line } from '../input/given.ts';
import { operation } from '../operation.ts';
import { listAudit, readAuditFilter } from './list-audit.ts';
import { readHead, verifyAudit } from './verify-audit.ts';
import { AuditListView, VerifiedAuditView } from './views.ts';

export const listAuditOperation = operation({
  action: 'listAudit',
  summary: 'What people did here, the newest first',
  ...{ method: 'GET', path: '/audit', output: AuditListView },
  input: Type.Object({ action: Line, subject: Line, by: Line, limit: Line, before: Line }),
  read: (given) => readAuditFilter(given),
  run: listAudit,
});

export const verifyAuditOperation = operation({
  action: 'verifyAudit',
  summary: 'Whether the log was changed',
  ...{ method: 'GET', path: '/audit/verification', output: VerifiedAuditView },
  input: Type.Object({ head: Line }),
  read: ({ head }) => ({ kept: readHead(head) }),
  run: verifyAudit,
});
