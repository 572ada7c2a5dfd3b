import { parseAddress } from '@quittance/tron/address';
import { expect, test } from 'vitest';
import { decodeId } from '../../src/core/domain/ids.ts';
import { headOf } from '../../src/core/domain/manifest/manifest-head.ts';
import { createAddressGuard } from '../../src/core/payments/manifest/address-guard.ts';
import { type InstalledManifest, nativeSha256, rulesOf } from '../../src/core/payments/manifest/read-installed.ts';
import type { OwnAddress } from '../../src/core/store/db/address-column.ts';
import { VECTOR } from './vector.ts';

const [PROJECT = '', OTHER = ''] = ['prj_01j9zk7v5rfq4bt4n9q1v7h3ce', 'prj_01j9zk7v5rfq4bt4n9q1v7h3cf'].map(
  (id) => decodeId('prj', id) ?? '',
);
const USDT = 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t';
const STRANGER = 'TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH';

function own(text: string, projectId = PROJECT, network = 'mainnet'): OwnAddress {
  const parsed = parseAddress(text);
  if (parsed.kind === 'invalid') throw new Error(parsed.reason);
  return { network, projectId, account: parsed.account, address: parsed.address };
}

const installed: InstalledManifest = {
  ...{ manifest: VECTOR, signatures: [], head: headOf(VECTOR, nativeSha256) },
  places: new Map([['mainnet', new Map([[USDT, { projectId: PROJECT, leaf: 0 }]])]]),
  rules: rulesOf(VECTOR),
};

function guardWith(mode: 'warn' | 'enforce' | null) {
  const told: string[] = [];
  const settings = mode && { path: '', pinned: { needed: 1, keys: [] }, mode, dataDir: '' };
  const guard = createAddressGuard(settings, ({ subject }) => void told.push(subject));
  return { guard, told };
}

test('only an address of its project passes in enforce; on a network that needs none, every one', () => {
  const { guard, told } = guardWith('enforce');
  // Before a manifest is in force, no mainnet address is signed.
  expect(guard.refuse(own(USDT))).toMatch(/no valid manifest is in force/);
  expect(guard.refuse(own(USDT, PROJECT, 'nile'))).toBeNull();
  guard.install(installed);
  expect(guard.refuse(own(USDT))).toBeNull();
  expect(guard.refuse(own(USDT, OTHER))).toMatch(/lists it for prj_01j9zk7v5rfq4bt4n9q1v7h3ce instead/);
  expect(guard.refuse(own(STRANGER))).toMatch(/serial 1\) does not list it/);
  expect(told).toEqual([USDT, USDT, STRANGER]);
});

test('a project has the policy that is signed, and at most the surcharge', () => {
  const { guard, told } = guardWith('enforce');
  guard.install(installed);
  const rule = { network: 'mainnet', projectId: PROJECT, policy: 'tail', maxSurchargeMicro: 10_000n } as const;
  expect(guard.refuseRule(rule)).toBeNull();
  expect(guard.refuseRule({ ...rule, maxSurchargeMicro: 9_999n })).toBeNull();
  expect(guard.refuseRule({ ...rule, projectId: 'of no manifest' })).toBeNull();
  expect(told).toEqual([]);
  expect(guard.refuseRule({ ...rule, maxSurchargeMicro: 10_001n })).toMatch(
    /settings of prj_01j9zk7v5rfq4bt4n9q1v7h3ce on mainnet differ from the signed manifest: its surcharge limit is 0.010001 USDT, but the manifest allows at most 0.01/,
  );
  expect(guard.refuseRule({ ...rule, policy: 'exact' })).toMatch(/its policy is exact instead of tail/);
  expect(told).toEqual(['prj_01j9zk7v5rfq4bt4n9q1v7h3ce', 'prj_01j9zk7v5rfq4bt4n9q1v7h3ce']);
  const warning = guardWith('warn');
  warning.guard.install(installed);
  expect(warning.guard.refuseRule({ ...rule, policy: 'exact' })).toBeNull();
  expect(warning.told).toHaveLength(1);
});

test('in warn it is told, and without settings nothing is', () => {
  const warning = guardWith('warn');
  warning.guard.install(installed);
  expect(warning.guard.refuse(own(STRANGER))).toBeNull();
  expect(warning.told).toEqual([STRANGER]);
  const off = guardWith(null);
  expect(off.guard.refuse(own(STRANGER))).toBeNull();
  expect(off.told).toEqual([]);
});

test('a new address that is not signed is refused in enforce only, and nothing is reported', () => {
  for (const [mode, lack] of [
    ['enforce', 'the manifest in force (serial 1) does not list it'],
    ['warn', null],
    [null, null],
  ] as const) {
    const { guard, told } = guardWith(mode);
    guard.install(installed);
    expect(guard.refuseNew(own(USDT))).toBeNull();
    expect(guard.refuseNew(own(STRANGER))).toBe(lack);
    expect([told, guard.met()]).toEqual([[], 0]);
  }
});
