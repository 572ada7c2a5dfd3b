import { stat } from 'node:fs/promises';
import { AppError } from '../../domain/errors.ts';
import { encodeId } from '../../domain/ids.ts';
import type { Network } from '../../domain/network.ts';
import type { UnixMs } from '../../domain/time.ts';
import type { Logger } from '../../runtime/log.ts';
import { type Loop, type LoopHealth, startLoop } from '../../runtime/loop.ts';
import { settleAlarms } from '../../store/chain/alarms.ts';
import type { OwnAddress } from '../../store/db/address-column.ts';
import type { Database } from '../../store/db/database.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import { listStored } from '../../store/ledger/addresses.ts';
import { listRules } from '../../store/ledger/projects.ts';
import { type AddressGuard, describeUnvouched } from './address-guard.ts';
import {
  idsOf,
  lackOfNetworks,
  type ManifestSettings,
  type ReadInstalled,
  readInstalled,
  writeMark,
} from './read-installed.ts';

type Deps = {
  db: Database;
  guard: AddressGuard;
  settings: ManifestSettings;
  networks: readonly Network[];
  log: Logger;
  loops?: LoopHealth;
  now(): UnixMs;
};

/** Checking a file's modification time takes only microseconds. */
const LOOK_MS = 2000;
/** How often the active addresses are compared. 10,000 addresses take about 50 ms. */
const COMPARE_MS = 30_000;
/** This interval applies after an unsigned address was encountered, because its alarm should close soon after the problem is fixed. */
const COMPARE_MET_MS = 10_000;
/**
 * If there are more problems than this, the whole manifest is probably missing. The remaining ones are reported once the first ones are
 * resolved.
 */
const MAX_ALARMS = 20;
const MANIFEST = 'addresses.manifest';

/**
 * Brings the installed manifest into force and compares the active addresses with it. Repeats this whenever the file changes. Throws only
 * in the mode `enforce`: `MANIFEST_REFUSED`, `ADDRESS_NOT_VOUCHED`.
 */
export async function watchManifest(deps: Deps): Promise<Loop> {
  const { settings, guard, log, loops } = deps;
  const { mode } = settings;
  let stamp = await stampOf(settings.path);
  let problem = await takeIntoForce(deps);
  if (problem !== null && mode === 'enforce') throw new AppError('MANIFEST_REFUSED', problem);
  const unvouched = await findUnvouched(deps);
  if (unvouched.length > 0 && mode === 'enforce') throw refusedStart(unvouched);
  let compared = { atMs: Number.NEGATIVE_INFINITY, met: 0 };
  return startLoop({
    name: 'address manifest',
    log,
    health: loops,
    maxPauseMs: COMPARE_MS,
    run: async () => {
      const found = await stampOf(settings.path);
      if (found !== stamp) {
        problem = await takeIntoForce(deps);
        stamp = found;
        compared.atMs = Number.NEGATIVE_INFINITY;
        // The previous manifest stays in force, so an attacker who can only write this file gains nothing.
        if (problem !== null) log.error({ manifest: settings.path }, problem);
      }
      const met = guard.met();
      const pauseMs = met === compared.met ? COMPARE_MS : COMPARE_MET_MS;
      if (performance.now() - compared.atMs >= pauseMs) {
        await compare(deps, problem ?? expiry(guard, deps.now()));
        compared = { atMs: performance.now(), met };
      }
      return LOOK_MS;
    },
  });
}

/** Returns why the file can't come into force. */
async function takeIntoForce({ db, guard, settings, log, now }: Deps): Promise<string | null> {
  const identity = await findLedgerIdentity(db);
  const ledgerId = identity?.id ?? null;
  const read: ReadInstalled = await readInstalled(settings, { ledgerId, now: now() });
  if (read.kind === 'refused') return read.reason;
  const { manifest, head, rules } = read.installed;
  const lack = lackOfNetworks(rules, await listRules(db, idsOf(rules)));
  if (lack !== null) return `the address manifest ${settings.path}: ${lack}`;
  if (guard.installed()?.head.digest === head.digest) return null;
  await writeMark(settings.dataDir, {
    ...{ serial: manifest.serial, digest: head.digest, ledgerId: manifest.ledgerId },
  });
  guard.install(read.installed);
  const addresses = head.tree.levels[0]?.length ?? 0;
  log.info({ serial: manifest.serial, addresses, mode: settings.mode }, 'an address manifest is in force');
  return null;
}

/** An expired manifest stays in force. If a missing signature could stop a shop at midnight, operators would soon turn signatures off. */
function expiry(guard: AddressGuard, now: UnixMs): string | null {
  const manifest = guard.installed()?.manifest;
  if (manifest === undefined || now <= Date.parse(manifest.notAfter)) return null;
  return `the address manifest (serial ${manifest.serial}) expired at ${manifest.notAfter}: review it, then sign and install a new manifest. Until you do, the expired manifest stays in force`;
}

/** Returns unsigned active addresses, and passes the retired ones to the guard. */
async function findUnvouched({ db, guard, networks }: Deps): Promise<(OwnAddress & { lack: string })[]> {
  const found: (OwnAddress & { lack: string })[] = [];
  const aside: OwnAddress[] = [];
  for (const network of networks.filter(guard.isGuarded)) {
    for await (const batch of listStored(db, network)) {
      for (const own of batch) {
        const lack = guard.lackOf(own);
        if (lack === null) continue;
        if (own.isRetired) aside.push(own);
        else found.push({ ...own, lack });
      }
    }
  }
  guard.setAside(aside);
  return found;
}

/** Returns active projects with an unsigned policy or surcharge. */
async function findStrangeRules({ db, guard }: Deps): Promise<{ network: Network; subject: string; lack: string }[]> {
  const rules = guard.installed()?.rules;
  if (rules === undefined) return [];
  return (await listRules(db, idsOf(rules))).flatMap(({ id, isArchived, ...rule }) => {
    const lack = isArchived ? null : guard.lackOfRule({ ...rule, projectId: id });
    return lack === null ? [] : [{ network: rule.network, subject: encodeId('prj', id), lack }];
  });
}

async function compare(deps: Deps, problem: string | null): Promise<void> {
  const { db, networks, log } = deps;
  const unvouched = (await findUnvouched(deps)).slice(0, MAX_ALARMS);
  const strange = (await findStrangeRules(deps)).slice(0, MAX_ALARMS);
  const found = [
    ...unvouched.map((own) => ({
      ...{ network: own.network as Network, subject: own.address as string },
      detail: describeUnvouched(own, own.lack),
    })),
    ...strange.map(({ lack, ...about }) => ({ ...about, detail: lack })),
    ...(problem === null ? [] : networks.map((network) => ({ network, subject: MANIFEST, detail: problem }))),
  ].filter(({ network }) => networks.includes(network));
  await settleAlarms({ db, log }, 'address-not-vouched', found, { networks });
}

function refusedStart(unvouched: readonly (OwnAddress & { lack: string })[]): AppError {
  const listed = unvouched.slice(0, MAX_ALARMS).map((own) => ({
    ...{ subject: own.address, message: describeUnvouched(own, own.lack) },
  }));
  const { length } = unvouched;
  const more = length > listed.length ? ` (the first ${listed.length} are listed)` : '';
  const names = listed.map(({ subject }) => subject).join(', ');
  return new AppError(
    'ADDRESS_NOT_VOUCHED',
    `${length} ${length === 1 ? 'address in use is' : 'addresses in use are'} not signed${more}: ${names}. Nothing was started. For addresses that are yours, sign and install a manifest that lists them ("quittance manifest draft"). Retire the others ("quittance address retire"), and find out who changed the database. To start anyway, set QUITTANCE_MANIFEST_MODE=warn`,
    { problems: listed },
  );
}

/** Returns text that changes whenever the file does, or an empty string if the file doesn't exist. */
async function stampOf(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  return found === null ? '' : `${found.mtimeMs} ${found.ino} ${found.size}`;
}
