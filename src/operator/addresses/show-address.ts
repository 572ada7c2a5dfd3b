import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { toIso } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { countAddresses, findAddresses } from '../../store/ledger/addresses.ts';
import { parseAddress } from '../../tron/address.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { ifTooSlow, limitTime } from '../limit-time.ts';
import { selectProject } from '../select-project.ts';
import { countOpenInvoices, MAX_OPEN_INVOICES } from './balance-queries.ts';
import { type AddressView, lifeStatusOf } from './views.ts';

const TIMEOUT_MS = 3000;

/** An address of a project, and what retiring it means in numbers. Errors: `NOT_FOUND`, `INVALID_ARGUMENT`. */
export async function showAddress(
  { db }: { db: Database },
  actor: Actor,
  input: { projectId: string | undefined; address: string },
): Promise<AddressView> {
  const project = await selectProject(db, actor, input.projectId);
  const parsed = parseAddress(input.address);
  const owned = parsed.kind === 'ok' ? await findAddresses(db, project.network, [parsed.account]) : [];
  const found = owned.find(({ projectId }) => projectId === project.id);
  if (found === undefined) {
    throw new AppError(
      'NOT_FOUND',
      say`${clip(input.address)} is not in this project: "${{ command: 'address list' }}" shows those that are`,
    );
  }
  const openInvoices = await db
    .snapshot(async (tx) => {
      await limitTime(tx, TIMEOUT_MS);
      return countOpenInvoices(tx, found.id, project.network);
    })
    .catch(ifTooSlow);
  return {
    ...{
      projectId: encodeId('prj', project.id),
      network: project.network,
      address: found.address,
      policy: found.policy,
    },
    status: lifeStatusOf(found),
    retiredAt: found.retiredAt && toIso(found.retiredAt),
    openInvoices,
    isOpenInvoicesMore: openInvoices === MAX_OPEN_INVOICES,
    projectPolicy: project.policy,
    activeAddresses: (await countAddresses(db, project.id)).active,
  };
}
