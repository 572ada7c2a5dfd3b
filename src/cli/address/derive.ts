import { encodeId } from '../../domain/ids.ts';
import type { Policy } from '../../domain/policy.ts';
import { changeAutoDerivation } from '../../payments/change-auto-derivation.ts';
import { AUTO_DERIVE_LIMIT, type Derived, deriveNextAddresses } from '../../payments/derive-addresses.ts';
import { findAccountKey, listAccountKeys } from '../../store/account-keys.ts';
import type { Database } from '../../store/database.ts';
import type { Project } from '../../store/projects.ts';
import { type AccountXpub, parseAccountXpub } from '../../tron/account-xpub.ts';
import { CliError } from '../cli-error.ts';
import { clip } from '../clip.ts';
import { readOperator } from '../operator.ts';
import { secretProblem } from '../secret-problem.ts';
import { selectProject } from '../select-project.ts';
import { spotSecret } from '../spot-secret.ts';
import type { Result, Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { operating, otherPolicyNote } from './add.ts';
import { confirmFirstAddress, WALLET_ADVICE } from './confirm.ts';

export type DeriveAddressOptions = {
  project?: string;
  xpub?: string;
  count?: string;
  autoLimit?: string;
  first?: string;
  policy?: Policy;
  by?: string;
  fresh?: boolean;
};

/** One takes about a millisecond, in a transaction that holds the project. */
const MAX_COUNT = 1000;

/** Adds the next addresses of an account key; a key that is new must first be confirmed to be the wallet's. */
export async function deriveProjectAddresses(terminal: Terminal, options: DeriveAddressOptions): Promise<Result> {
  const operator = readOperator(options.by, terminal.env);
  const autoLimit = options.autoLimit === undefined ? null : readAutoLimit(options.autoLimit);
  const count = options.count === undefined && autoLimit !== null ? null : readCount(options.count);
  const given = options.xpub === undefined ? null : readXpub(options.xpub.trim());
  const found = await withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    return { project, ...(await findKey(db, project, given)) };
  });
  if (!found.isStored && count === null) {
    throw new CliError('INVALID_ARGUMENT', 'this key is new: give --count as well, 1 for example');
  }
  // The database is closed while a person looks into a wallet: another command or the service may need its directory.
  if (!found.isStored || options.first !== undefined) await confirmFirstAddress(terminal, found.xpub, options.first);
  return withDatabase(terminal, async ({ db }) => {
    const { project, xpub, isStored } = found;
    const projectId = project.id;
    const by = operating(db, operator);
    const limit = autoLimit ?? AUTO_DERIVE_LIMIT;
    const yielded = isStored && autoLimit !== null ? await changeAutoDerivation(by, { projectId, xpub, limit }) : 0;
    if (count === null) return presentLimit(project, yielded, limit);
    const isFresh = options.fresh === true;
    const wanted = { projectId, xpub, count, policy: options.policy ?? null, isFresh, autoDeriveLimit: limit };
    const outcome = await deriveNextAddresses(by, wanted);
    if (outcome.kind === 'key-of-another-project') throw keyOfAnother();
    if (outcome.kind === 'all-taken') throw allTaken(outcome);
    if (outcome.kind === 'too-soon') throw tooSoon();
    if (outcome.kind === 'not-wanted') throw new Error('addresses that a person wants are always wanted');
    return present(outcome, count, isStored, limit);
  });
}

function readCount(text = ''): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_COUNT) return count;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--count is ${clip(text)}: give a number from 1 to ${MAX_COUNT}; the next call goes on where this one ends`,
  );
}

/** Addresses that one key may yield by itself in all. */
const MAX_AUTO_LIMIT = 10_000;

function readAutoLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (limit <= MAX_AUTO_LIMIT) return limit;
  throw new CliError(
    'INVALID_ARGUMENT',
    `--auto-limit is ${clip(text)}: give a number from 0 (never) to ${MAX_AUTO_LIMIT}`,
  );
}

function presentLimit(project: Project, autoDerived: number, autoDeriveLimit: number): Result {
  return {
    data: { projectId: encodeId('prj', project.id), network: project.network, autoDerived, autoDeriveLimit },
    text: `the key may yield ${autoDeriveLimit} addresses by itself, and has yielded ${autoDerived}`,
    ...(autoDeriveLimit > 0
      ? { next: 'have your wallet look as many addresses ahead, or its balance may look too small' }
      : {}),
  };
}

function readXpub(text: string): AccountXpub {
  const secret = spotSecret(text);
  if (secret !== null) {
    throw new CliError('INVALID_ARGUMENT', 'no address was added', { problems: [secretProblem('--xpub', secret)] });
  }
  const parsed = parseAccountXpub(text);
  if (parsed.kind === 'ok') return parsed.xpub;
  throw new CliError('INVALID_ARGUMENT', `--xpub: ${parsed.reason}; no address was added`);
}

async function findKey(
  db: Database,
  project: Project,
  given: AccountXpub | null,
): Promise<{ xpub: AccountXpub; isStored: boolean }> {
  if (given !== null) {
    const key = await findAccountKey(db, project.network, given);
    if (key !== null && key.project_id !== project.id) throw keyOfAnother();
    return { xpub: given, isStored: key !== null };
  }
  const [only, ...others] = await listAccountKeys(db, project.id);
  if (only === undefined) {
    throw new CliError(
      'INVALID_ARGUMENT',
      'this project has no account key yet: give --xpub, or, if your wallet exports none, paste addresses ("quittance address add")',
    );
  }
  if (others.length === 0) return { xpub: only.xpub as AccountXpub, isStored: true };
  const problems = [only, ...others].map(({ xpub, next_index }) => {
    const short = `${xpub.slice(0, 10)}…${xpub.slice(-6)}`;
    return { subject: short, message: `${short}  (${next_index} addresses so far)` };
  });
  throw new CliError('INVALID_ARGUMENT', 'this project has several account keys: say which with --xpub', { problems });
}

function keyOfAnother(): CliError {
  return new CliError(
    'CONFLICT',
    'this account key belongs to another project of the network: use another account of your wallet for this one',
  );
}

function allTaken({ from, count }: Extract<Derived, { kind: 'all-taken' }>): CliError {
  return new CliError(
    'CONFLICT',
    `no address was added: all addresses of this key from #${from + 1} to #${from + count} are in projects already. Give the next ones with "quittance address add", or use another account of your wallet`,
  );
}

function tooSoon(): CliError {
  return new CliError(
    'CONFLICT',
    'no address was added: in a ledger that was restored, a key that may have been used since the backup yields two addresses a second. Run the command again in a minute, or use another account of your wallet and --fresh (docs/backup.md)',
  );
}

/** More would scroll away what was added. */
const MAX_SHOWN = 10;

function present(
  outcome: Extract<Derived, { kind: 'derived' }>,
  count: number,
  wasStored: boolean,
  autoLimit: number,
): Result {
  const { project, policy, added, skipped } = outcome;
  const more = skipped.length - MAX_SHOWN;
  const next = [
    ...(added.length < count
      ? [`warning: only ${added.length} of ${count} were added; run the command again for the others`]
      : []),
    ...otherPolicyNote(policy, project),
    ...(wasStored ? [] : [WALLET_ADVICE, autoNote(autoLimit)]),
    'a wallet may show only the first few: have it show as many as you added, or its balance will look too small',
  ];
  return {
    data: {
      projectId: encodeId('prj', project.id),
      network: project.network,
      policy,
      added: added.map(({ address, index }) => ({ address, derivationIndex: index })),
      skipped: skipped.map(({ address, index, project_id }) => {
        return { address, derivationIndex: index, projectId: encodeId('prj', project_id) };
      }),
    },
    text: [
      ...skipped.slice(0, MAX_SHOWN).map(({ address, index, project_id }) => {
        const whose = project_id === project.id ? 'this project' : `another project (${encodeId('prj', project_id)})`;
        return `#${index + 1} ${address} is passed over: it is already in ${whose}`;
      }),
      ...(more > 0 ? [`… and ${more} more are passed over, up to #${(skipped.at(-1)?.index ?? 0) + 1}`] : []),
      ...added.map(({ address, index }) => `added #${index + 1} ${address}`),
    ].join('\n'),
    next: next.join('\n'),
  };
}

function autoNote(limit: number): string {
  return limit === 0
    ? 'the key yields addresses only when you ask for them (--auto-limit)'
    : `when payable amounts get scarce, up to ${limit} more are added by themselves: have your wallet look as far, or say --auto-limit 0`;
}
