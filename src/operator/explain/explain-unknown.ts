import { say, type Text } from '../../domain/message.ts';
import { NETWORKS } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Sql } from '../../store/db/database.ts';
import type { Actor } from '../actor.ts';
import { describeTransaction, type Transaction } from './describe-transaction.ts';
import { EVENTS_SEARCHED } from './event-queries.ts';
import { type Explanation, nameProjects, SEARCHED } from './explanation.ts';
import { describeStand, ledgerOf, readStand } from './stand.ts';

/** Says what to do about a transaction that the ledger does not know, and up to which block the ledger knows each chain. */
export async function explainUnknownTransaction(
  db: Sql,
  subject: Transaction,
  projects: Actor['projects'],
  now: UnixMs,
): Promise<Explanation> {
  const stands = [];
  for (const network of NETWORKS) stands.push(await readStand(db, network, now));
  const followed = stands.filter(({ cursor }) => cursor !== null);
  const troubles = followed.flatMap(({ trouble }) => (trouble === null ? [] : [`Mind that ${trouble}.`]));
  const { subject: described, fields } = describeTransaction(subject);
  return {
    verdict: [
      `The ledger has nothing of this transaction: up to the blocks recorded, no USDT transfer of it came to or left an address of ${nameProjects(projects)}.`,
      ...(projects?.length === 1 ? [say`Without ${{ field: 'projectId' }} ${SEARCHED}.`] : []),
      ...troubles,
    ],
    subject: { ...described, ledger: followed.map(ledgerOf) },
    fields: [
      ...fields,
      ...followed.map((stand) => ['ledger', describeStand(stand)] as const),
      ...(followed.length === 0 ? [['ledger', 'no network was examined yet'] as const] : []),
    ],
    timeline: [],
    omissions: [],
    next: STEPS.map((says) => ({ says })),
    isUnknown: true,
  };
}

const STEPS: readonly Text[] = [
  'look it up at tronscan.org (nile.tronscan.org for Nile); the link of the payer may be of another network',
  'is it there and successful, in USDT, and to one of your addresses? If not, it paid somebody else or nobody',
  say`is its block above the blocks that are recorded here? Then wait, and ask again; see "${{ command: 'chain status' }}"`,
  say`is it below, and to an address that you had then? Then read its block again: ${{ command: 'chain rescan', input: { from: '<block>', to: '<block>' } }}`,
  say`was it seen here before? Then its block was orphaned: such ones are found in the newest ${EVENTS_SEARCHED} events only, but "${{ command: 'explain' }}" of the invoice tells of it for ever`,
];
