import { resolve } from 'node:path';
import { configInvalid, invalidArgument, notFound, usageError } from '../../core/domain/errors.ts';
import { isNetwork, type Network } from '../../core/domain/network.ts';
import type { Policy } from '../../core/domain/policy.ts';
import { formatFields } from '../../faces/operator/command-words.ts';
import { clip } from '../../faces/operator/input/problems.ts';
import {
  draftManifest,
  installManifest,
  readGiven,
  readGivenSettings,
  readInForce,
  readLedgerFacts,
} from '../../faces/operator/manifest/install-manifest.ts';
import {
  checkExpansion,
  type ManifestFile,
  readManifestFile,
  viewManifest,
} from '../../faces/operator/manifest/sign-manifest.ts';
import type { Config } from '../../server/config/config.ts';
import { loadConfig } from '../terminal/load-config.ts';
import type { Result, Terminal } from '../terminal/terminal.ts';
import { now, withDatabase } from '../terminal/with-database.ts';
import { describe, readKeys } from './sign.ts';

type DraftOptions = {
  output: string;
  network?: string[];
  reserve: string;
  days: string;
  project?: string;
  add?: string[];
  policy?: Policy;
  maxSurcharge?: string;
  without?: string[];
};

/** Deriving this many addresses from one account key takes ten seconds. */
const MAX_RESERVE = 10_000;
const MAX_DAYS = 3650;

export async function printDraft(terminal: Terminal, options: DraftOptions): Promise<Result> {
  const { output, add = [], without = [], project } = options;
  const settings = readGivenSettings(options);
  if (add.length > 0 && project === undefined)
    throw usageError`--add requires --project: set it to the project that the addresses belong to`;
  if (Object.keys(settings).length > 0 && project === undefined)
    throw usageError`--policy and --max-surcharge require --project: set it to the project they apply to`;
  const wanted = {
    ...{ path: resolve(output), networks: (options.network ?? []).map(readNetwork) },
    reserve: readCount('--reserve', options.reserve, MAX_RESERVE),
    validDays: readCount('--days', options.days, MAX_DAYS),
    ...{ projectId: project ?? null, settings, added: readGiven('--add', add), left: readGiven('--without', without) },
  };
  const data = await withDatabase(terminal, async ({ config, db, now }) => {
    const previous = config.addressManifest === null ? null : await readInForce(config.addressManifest);
    return draftManifest({ db, now }, { ...wanted, previous });
  });
  return {
    data,
    text: [
      formatFields([
        ['draft', data.file],
        ['serial', String(data.serial)],
        ['good until', data.notAfter],
        ['addresses', String(data.addresses)],
      ]),
      data.changes.join('\n') || 'no changes compared with the installed manifest',
      ...data.warnings.map((warning) => `WARNING: ${warning}`),
    ],
    next: 'copy the draft to the machine with the signing key, and run: quittance manifest sign',
  };
}

export async function printInstalled(terminal: Terminal, file: string): Promise<Result> {
  const askLedger = (ids: readonly string[]) =>
    withDatabase(terminal, ({ db }) => readLedgerFacts(db, ids)).catch((error: Error) => {
      terminal.note(`WARNING: could not check whether this manifest belongs to the database: ${error.message}`);
      return null;
    });
  const data = await installManifest(settingsOf(loadConfig(terminal)), resolve(file), { now: now(), askLedger });
  return {
    data,
    text: [
      formatFields([
        ['in force', data.file],
        ['serial', String(data.serial)],
      ]),
      data.changes.join('\n') || 'nothing changes',
    ],
    next: 'services use it within seconds; if several machines run the service, install it on each',
  };
}

export async function printManifest(terminal: Terminal, path: string | undefined): Promise<Result> {
  const config = loadConfig(terminal);
  const data = viewManifest(await readFileOrInForce(config, path), config.addressManifest?.pinned ?? null);
  return { data, text: describe(data) };
}

export async function printVerified(
  terminal: Terminal,
  path: string | undefined,
  { keys }: { keys?: string },
): Promise<Result> {
  const config = loadConfig(terminal);
  const pinned = keys === undefined ? settingsOf(config).pinned : readKeys(keys);
  const file = await readFileOrInForce(config, path);
  checkExpansion(file.manifest);
  const data = viewManifest(file, pinned);
  return { data, text: describe(data), hasFailed: data.problem !== null };
}

async function readFileOrInForce(config: Config, path: string | undefined): Promise<ManifestFile> {
  if (path !== undefined) return readManifestFile(resolve(path));
  const settings = settingsOf(config);
  const file = await readInForce(settings);
  if (file !== null) return file;
  throw notFound`no manifest is installed: ${settings.path} does not exist`;
}

function settingsOf({ addressManifest }: Config): NonNullable<Config['addressManifest']> {
  if (addressManifest !== null) return addressManifest;
  throw configInvalid`no manifest is configured here: set QUITTANCE_ADDRESS_MANIFEST and QUITTANCE_MANIFEST_KEYS to the service's values`;
}

function readNetwork(text: string): Network {
  if (isNetwork(text)) return text;
  throw invalidArgument`--network ${clip(text)} is not a network, so nothing was drafted`;
}

function readCount(option: string, text: string, maximum: number): number {
  const value = Number(text);
  if (/^\d{1,6}$/.test(text) && value <= maximum) return value;
  throw invalidArgument`${option} must be a whole number up to ${maximum}`;
}
