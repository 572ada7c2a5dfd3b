import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { formatManifest, type Manifest } from '../../src/core/domain/manifest/manifest.ts';
import { headOf } from '../../src/core/domain/manifest/manifest-head.ts';
import { signHead } from '../../src/core/domain/manifest/manifest-signature.ts';
import { type ManifestSettings, nativeSha256 } from '../../src/core/payments/manifest/read-installed.ts';
import { findLedgerIdentity } from '../../src/core/store/db/ledger-identity.ts';
import type { ServiceOptions } from '../../src/server/context.ts';
import { runSql } from '../contract/sql.ts';
import { startTestService, type TestService } from '../support/service.ts';

type Config = Omit<Partial<ServiceOptions['config']>, 'addressManifest'>;

const SIGNING_KEY = new Uint8Array(32).fill(7);

/** Returns the file of a manifest, signed with the pinned key or another one. */
export function signedText(manifest: Manifest, key = SIGNING_KEY): string {
  const { text } = headOf(manifest, nativeSha256);
  return formatManifest({ manifest, signatures: [signHead(text, key)] });
}

export type GuardedService = TestService & {
  manifestPath: string;
  /** In the service's form. */
  settings: ManifestSettings;
  pinned: ManifestSettings['pinned'];
  /** Replaces the manifest's file in one step, as an installation does. A running service never reads half of it. */
  putManifest(text: string | Buffer): Promise<void>;
  /** Signs a manifest with these addresses of the project, and puts it where the service looks. */
  vouchFor(addresses: readonly string[], changes?: Partial<Manifest>): Promise<Manifest>;
  /** Takes effect at the next start. */
  enforce(): void;
  /** Returns the open `address-not-vouched` alarms by subject. */
  unvouched(): Promise<Record<string, string>>;
};

/** Starts a service for one test, with a manifest of its addresses in force. */
export async function startGuardedService(mode: 'warn' | 'enforce' = 'enforce'): Promise<GuardedService> {
  const service = await openGuardedService(mode);
  onTestFinished(() => service.stop());
  return service;
}

/** Does the same for a caller that stops it. */
export async function openGuardedService(mode: 'warn' | 'enforce', more: Config = {}): Promise<GuardedService> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-manifest-'));
  const config: Config & { addressManifest?: NonNullable<ServiceOptions['config']['addressManifest']> } = { ...more };
  const service = await startTestService({ config });
  const manifestPath = join(folder, 'addresses.manifest');
  const ledgerId = (await findLedgerIdentity(service.db))?.id ?? '';
  const putManifest: GuardedService['putManifest'] = async (text) => {
    await writeFile(`${manifestPath}.draft`, text);
    await rename(`${manifestPath}.draft`, manifestPath);
  };
  let previous: { serial: number; digest: string } | null = null;
  const vouchFor: GuardedService['vouchFor'] = async (addresses, changes = {}) => {
    const entry = { addresses, maxSurcharge: '0.01', policy: 'tail' as const, xpubs: [] };
    const manifest: Manifest = {
      ...{ v: 1, ledgerId, serial: (previous?.serial ?? 0) + 1, previous: previous?.digest ?? null },
      ...{ notAfter: '2099-01-01T00:00:00.000Z', networks: { devnet: { [service.project.projectId]: entry } } },
      ...changes,
    };
    await putManifest(signedText(manifest));
    previous = { serial: manifest.serial, digest: headOf(manifest, nativeSha256).digest };
    return manifest;
  };
  await vouchFor(service.project.addresses);
  const pinned = { needed: 1, keys: [signHead('', SIGNING_KEY).key] };
  const settings = { path: manifestPath, pinned, mode, dataDir: join(folder, 'data') };
  config.addressManifest = settings;
  await service.restart();
  const enforce = () => {
    if (config.addressManifest !== undefined) config.addressManifest = { ...config.addressManifest, mode: 'enforce' };
  };
  const unvouched = async () => {
    const rows = await runSql(
      service,
      `select subject, detail from alarms where kind = 'address-not-vouched' and resolved_at is null`,
    );
    return Object.fromEntries(rows.map(({ subject, detail }) => [subject, detail]));
  };
  const stop = async () => {
    await service.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return Object.assign(Object.create(service), {
    ...{ manifestPath, settings, pinned, putManifest, vouchFor, unvouched, enforce, stop },
  });
}
