import { addressNeed, type ExpectedOrders } from '../../domain/address-need.ts';
import { AppError, type FieldProblem } from '../../domain/errors.ts';
import { encodeId, uuidV7 } from '../../domain/ids.ts';
import { isNetwork, NETWORKS, type Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import { warnUnwatched } from '../../payments/watched-networks.ts';
import type { Database } from '../../store/db/database.ts';
import { findProject, insertProject } from '../../store/ledger/projects.ts';
import type { Actor } from '../actor.ts';
import { clip } from '../input/clip.ts';
import { fieldProblem } from '../input/field-error.ts';
import { recordActions } from '../record-actions.ts';
import {
  linkProblems,
  MAX_COUNT,
  type NeededInput,
  readCount,
  readSettings,
  type SettingsInput,
  storeLogo,
} from './read-settings.ts';
import { viewProject } from './view-project.ts';
import type { NewProjectView } from './views.ts';

type NewProject = ReturnType<typeof readNewProject>;

/** Reads what a project is to be, with all problems at once. Errors: `INVALID_ARGUMENT`. */
export function readNewProject({
  network,
  ...input
}: SettingsInput & NeededInput & ExpectedOrdersInput & { network: string }) {
  const problems: FieldProblem[] = [];
  const settings = readSettings(input, problems);
  const expected = readExpectedOrders(input, problems);
  if (isNetwork(network)) problems.push(...linkProblems(settings, network));
  else problems.push(fieldProblem('network', `is ${clip(network)}: choose ${NETWORKS.join(', ')}`));
  if (problems.length === 0 && isNetwork(network)) return { ...settings, network, expected };
  throw new AppError('INVALID_ARGUMENT', 'the project was not made', { problems });
}

/** As they are typed. `prices`: different amounts, 1 if it is left out, which needs the most addresses. */
export type ExpectedOrdersInput = { [Name in 'ordersPerDay' | 'prices']?: string | undefined };

function readExpectedOrders(
  { ordersPerDay, prices }: ExpectedOrdersInput,
  problems: FieldProblem[],
): ExpectedOrders | null {
  const read = (subject: keyof ExpectedOrdersInput, text: string) => {
    const count = readCount(text);
    if (count === null) problems.push(fieldProblem(subject, `is ${clip(text)}: it takes 1 to ${MAX_COUNT}`));
    return count ?? 1;
  };
  const expected = { perDay: read('ordersPerDay', ordersPerDay ?? '1'), prices: read('prices', prices ?? '1') };
  if (ordersPerDay !== undefined) return expected;
  if (prices !== undefined) problems.push(fieldProblem('prices', 'needs the orders a day as well'));
  return null;
}

/** `networks`: those whose nodes are known here. */
type Deps = { db: Database; networks: readonly Network[]; now(): UnixMs; random(bytes: number): Uint8Array };

export async function createProject(
  { db, networks, now, random }: Deps,
  actor: Actor,
  wanted: NewProject,
): Promise<NewProjectView> {
  const { network, expected, ...settings } = wanted;
  const id = uuidV7(now(), random(10));
  const stored = await storeLogo(db, settings);
  const project = await db.transaction(async (tx) => {
    await insertProject(tx, { id, network, ...stored });
    const inserted = await findProject(tx, id);
    if (inserted === null) throw new Error(`project ${id} was inserted and is not there`);
    const subject = encodeId('prj', id);
    await recordActions(tx, actor, now(), [
      { projectId: id, action: 'project.created', subject, detail: { name: inserted.name, network } },
    ]);
    return inserted;
  });
  const warning = await warnUnwatched(db, network, networks);
  const view = { ...viewProject(project), ...(warning !== null && { warning }) };
  if (expected === null) return view;
  const { perDay: ordersPerDay, prices } = expected;
  return { ...view, addressNeed: { ordersPerDay, prices, ...addressNeed(expected, project) } };
}
