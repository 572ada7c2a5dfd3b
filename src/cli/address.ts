import { randomBytes } from 'node:crypto';
import type { Config } from '../config.ts';
import { encodeId, uuidV7 } from '../domain/ids.ts';
import { toIso } from '../domain/time.ts';
import { systemClock } from '../runtime/clock.ts';
import { findAddressOwner, insertAddress, listAddresses } from '../store/addresses.ts';
import type { Database, Sql } from '../store/database.ts';
import type { Project } from '../store/projects.ts';
import { type AccountHex, parseAddress, type TronAddress } from '../tron/address.ts';
import { USDT_CONTRACTS } from '../tron/usdt.ts';
import { CliError, type Problem } from './cli-error.ts';
import { clip } from './clip.ts';
import { type AddressEntry, readAddresses } from './read-addresses.ts';
import { selectProject } from './select-project.ts';
import { isSeedPhrase, spotSecret } from './spot-secret.ts';
import { formatTable, type Result, type Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

export type AddAddressOptions = { project?: string; file?: string };

/** Adds all of the addresses or, if anything is wrong with any, none. */
export async function addAddresses(terminal: Terminal, args: string[], options: AddAddressOptions): Promise<Result> {
  const entries = await readAddresses(args, options.file, terminal.stdin);
  if (isSeedPhrase(entries.map(({ text }) => text))) throw refused([secretProblem('arguments', 'a seed phrase')]);
  return withDatabase(terminal, async ({ db, config }) => {
    const project = await selectProject(db, options.project);
    const candidates = readCandidates(entries, await usdtContracts(config));
    const taken = await findTaken(db, project, candidates.good);
    const problems = [...candidates.problems, ...taken];
    if (problems.length > 0)
      throw refused(problems, candidates.problems.length === 0 ? 'CONFLICT' : 'INVALID_ARGUMENT');
    await insertAll(db, project, candidates.good);
    const projectId = encodeId('prj', project.id);
    const added = candidates.good.map(({ address }) => address);
    return {
      data: { projectId, network: project.network, added },
      text: added.map((address) => `added ${address}`).join('\n'),
    };
  });
}

export async function listProjectAddresses(terminal: Terminal, options: { project?: string }): Promise<Result> {
  return withDatabase(terminal, async ({ db }) => {
    const project = await selectProject(db, options.project);
    const addresses = (await listAddresses(db, project.id)).map((row) => ({
      address: row.address,
      position: row.position,
      createdAt: toIso(row.created_at),
      retiredAt: row.retired_at === null ? null : toIso(row.retired_at),
    }));
    const rows = addresses.map(({ address, position, createdAt, retiredAt }) => {
      return [String(position), address, retiredAt === null ? 'in use' : 'retired', createdAt];
    });
    return {
      data: { data: addresses },
      text: formatTable(['POSITION', 'ADDRESS', 'STATUS', 'CREATED'], rows),
      ...(rows.length === 0 ? { next: 'no address yet: add one with "quittance address add T…"' } : {}),
    };
  });
}

type Candidate = { address: TronAddress; account: AccountHex };

/** The account of 20 zero bytes, T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb: nobody has its key. */
const BURN_ACCOUNT = '0'.repeat(40);

function readCandidates(entries: readonly AddressEntry[], contracts: readonly AccountHex[]) {
  const good: Candidate[] = [];
  const problems: Problem[] = [];
  const firstPlaces = new Map<AccountHex, string>();
  for (const { text, place } of entries) {
    const secret = spotSecret(text);
    if (secret !== null) {
      problems.push(secretProblem(place, secret));
      continue;
    }
    const parsed = parseAddress(text);
    const add = (message: string) =>
      problems.push({ subject: place, message: `${place} (${shown(text)}): ${message}` });
    if (parsed.kind === 'invalid') {
      add(/^[xyz]pub/.test(text) ? 'extended public keys are not taken; give addresses, T…' : parsed.reason);
      continue;
    }
    const { address, account } = parsed;
    const firstPlace = firstPlaces.get(account);
    firstPlaces.set(account, firstPlace ?? place);
    if (contracts.includes(account)) add('this is the USDT contract itself; give an address of your own wallet');
    else if (account === BURN_ACCOUNT) add('this is the burn address, whose money nobody can move');
    else if (firstPlace !== undefined) add(`this address was given before, as ${firstPlace}`);
    else good.push({ address, account });
  }
  return { good, problems };
}

/** Long texts are left out: a private key with a letter too many is none by its form. */
function shown(text: string): string {
  return text.length <= 44 ? clip(text) : `${text.length} characters, not shown`;
}

function secretProblem(place: string, kind: string): Problem {
  const where = place.startsWith('argument') ? 'It may now stand in your shell history' : 'It now stands in that input';
  return {
    subject: place,
    message:
      `${place}: this looks like ${kind}. Quittance never needs one; never paste it anywhere. ` +
      `${where}: delete it there, and if it is real, move the funds or replace it.`,
  };
}

async function usdtContracts(config: Config): Promise<AccountHex[]> {
  const devnet = await import('../devnet/keys.ts');
  const configured = Object.values(config.networks).map(({ usdt }) => usdt);
  return [USDT_CONTRACTS.mainnet.account, USDT_CONTRACTS.nile.account, devnet.USDT, devnet.FAKE_USDT, ...configured];
}

async function findTaken(db: Sql, project: Project, candidates: readonly Candidate[]): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const { address, account } of candidates) {
    const owner = await findAddressOwner(db, project.id, account);
    if (owner !== null) problems.push(takenProblem(address, owner === project.id));
  }
  return problems;
}

function takenProblem(address: TronAddress, isOwn: boolean): Problem {
  const message = isOwn
    ? `${address} is already in this project: leave it out`
    : `${address} belongs to another project: an address serves one project for life, give another one`;
  return { subject: address, message };
}

async function insertAll(db: Database, project: Project, candidates: readonly Candidate[]): Promise<void> {
  await db.transaction(async (tx) => {
    for (const candidate of candidates) {
      const id = uuidV7(systemClock.now(), randomBytes(10));
      if (await insertAddress(tx, { id, projectId: project.id, ...candidate })) continue;
      // Somebody added it since it was looked up.
      const owner = await findAddressOwner(tx, project.id, candidate.account);
      throw refused([takenProblem(candidate.address, owner === project.id)], 'CONFLICT');
    }
  });
}

function refused(problems: readonly Problem[], code: 'INVALID_ARGUMENT' | 'CONFLICT' = 'INVALID_ARGUMENT'): CliError {
  return new CliError(code, 'no address was added', { problems });
}
