import { encodeId } from '../../domain/ids.ts';
import type { AddressProof } from '../../domain/manifest/manifest.ts';
import { formatAmount, microUsdt } from '../../domain/money.ts';
import { keyMode, type Network } from '../../domain/network.ts';
import { BALANCE_CHECKS } from '../../store/chain/balance-checks.ts';
import { INCOMING_TRANSFERS } from '../../store/chain/incoming.ts';
import type { AddressChecks, OwnAddress, OwnRule } from '../../store/db/address-column.ts';
import { ADDING } from '../../store/ledger/addresses.ts';
import { OFFERED_ADDRESSES } from '../../store/ledger/allocation.ts';
import { OVERDUE } from '../record-changes.ts';
import { type InstalledManifest, type ManifestSettings, proveAddress, readInstalled } from './read-installed.ts';

type Place = Pick<OwnAddress, 'network' | 'projectId' | 'address'>;

/** Checks addresses against the manifest. Every address that is read from the database goes through this guard. */
export type AddressGuard = {
  mode: ManifestSettings['mode'] | 'off';
  /**
   * Returns the reason why an address that a statement has read must not be used, or `null` if it may be used. Reports every unsigned
   * address, but refuses it only in `enforce` mode.
   */
  refuse(address: OwnAddress, statement?: string): string | null;
  /**
   * Whether an address is skipped. Either the address is unsigned and retired, so that a transfer to it doesn't count as ours, or no order
   * may use it.
   */
  passesOver(address: OwnAddress, statement: string): boolean;
  /** Like `refuse`, but for an invoice's rule: the manifest must contain the project's policy and its maximum surcharge. */
  refuseRule(rule: OwnRule): string | null;
  /** Describes how a project differs from the manifest, in any mode. Returns `null` if it doesn't differ, or isn't in the manifest. */
  lackOfRule(rule: OwnRule): string | null;
  /** Returns why an address that isn't in the database yet must not be added, or `null`. Reports nothing. */
  refuseNew(address: Place): string | null;
  /** Returns why an address isn't signed, in any mode. */
  lackOf(address: Place): string | null;
  /** Whether the current manifest lists an address for its project. */
  vouchesFor(address: Place): boolean;
  /** Returns an address's proof for the payer, or `null` if the address isn't signed or no manifest is installed. */
  proofOf(network: Network, address: string): AddressProof | null;
  /**
   * Whether a network's addresses must be signed. That is the case if the manifest contains the network, and always on a network with real
   * money.
   */
  isGuarded(network: Network): boolean;
  installed(): InstalledManifest | null;
  install(installed: InstalledManifest): void;
  /** Returns how often an unsigned address was encountered. */
  met(): number;
  /** Sets the retired, unsigned addresses, which then no longer block the watcher. */
  setAside(addresses: readonly OwnAddress[]): void;
};

const OFFERED: readonly string[] = OFFERED_ADDRESSES;
/** Operators see the results of these statements, but payers never do. */
const OF_OPERATORS: readonly string[] = BALANCE_CHECKS;

/** `subject` is an address, a project, or the manifest itself. */
type Unvouched = { network: string; subject: string };

/**
 * If `settings` is `null`, no manifest is configured, and nothing is refused. `onUnvouched` is called each time an unsigned address is
 * used.
 */
export function createAddressGuard(
  settings: ManifestSettings | null,
  onUnvouched: (unvouched: Unvouched, reason: string) => void,
): AddressGuard {
  let installed: InstalledManifest | null = null;
  const mode = settings?.mode ?? 'off';
  const isGuarded = (network: string) =>
    mode !== 'off' &&
    (keyMode(network as Network) === 'live' || installed?.manifest.networks[network as Network] !== undefined);
  const placeOf = ({ network, address }: Place) => installed?.places.get(network)?.get(address);
  const vouchesFor = (own: Place) => placeOf(own)?.projectId === own.projectId;
  const lackOf: AddressGuard['lackOf'] = (own) => {
    if (!isGuarded(own.network) || vouchesFor(own)) return null;
    const place = placeOf(own);
    if (installed === null) return 'no valid manifest is in force';
    const { serial } = installed.manifest;
    return place === undefined
      ? `the manifest in force (serial ${serial}) does not list it`
      : `the manifest in force (serial ${serial}) lists it for ${encodeId('prj', place.projectId)} instead`;
  };
  let met = 0;
  let aside: ReadonlySet<string> = new Set();
  const isAside = (own: OwnAddress) => mode === 'enforce' && aside.has(keyOf(own)) && lackOf(own) !== null;
  const refuse: AddressGuard['refuse'] = (own, statement = '') => {
    const lack = lackOf(own);
    if (lack === null || OF_OPERATORS.includes(statement) || (statement === OVERDUE && isAside(own))) return null;
    const reason = describeUnvouched(own, lack);
    met += 1;
    onUnvouched({ network: own.network, subject: own.address }, reason);
    return mode === 'enforce' ? reason : null;
  };
  const lackOfRule: AddressGuard['lackOfRule'] = (rule) => {
    const vouched = isGuarded(rule.network) ? installed?.rules.get(rule.network)?.get(rule.projectId) : undefined;
    if (vouched === undefined) return null;
    const differs: string[] = [];
    if (rule.policy !== vouched.policy) differs.push(`its policy is ${rule.policy} instead of ${vouched.policy}`);
    if (rule.maxSurchargeMicro > vouched.maxSurchargeMicro) {
      const [is, most] = [rule.maxSurchargeMicro, vouched.maxSurchargeMicro].map((micro) =>
        formatAmount(microUsdt(micro)),
      );
      differs.push(`its surcharge limit is ${is} USDT, but the manifest allows at most ${most}`);
    }
    if (differs.length === 0) return null;
    return `the settings of ${encodeId('prj', rule.projectId)} on ${rule.network} differ from the signed manifest: ${differs.join('; ')} (serial ${installed?.manifest.serial}). If you changed these settings, sign and install a new manifest; if not, the database was changed directly. See "address-not-vouched" in docs/reference/alarms.md`;
  };
  const refuseRule: AddressGuard['refuseRule'] = (rule) => {
    const lack = lackOfRule(rule);
    if (lack === null) return null;
    met += 1;
    onUnvouched({ network: rule.network, subject: encodeId('prj', rule.projectId) }, lack);
    return mode === 'enforce' ? lack : null;
  };
  return {
    refuseNew: (place) => (mode === 'enforce' ? lackOf(place) : null),
    ...{ mode, refuse, lackOf, vouchesFor, refuseRule, lackOfRule, isGuarded },
    passesOver: (own, statement) =>
      (statement === INCOMING_TRANSFERS && isAside(own)) ||
      (OFFERED.includes(statement) && refuse(own, statement) !== null),
    setAside: (addresses) => {
      aside = new Set(addresses.map(keyOf));
    },
    proofOf: (network, address) => installed && proveAddress(installed, network, address),
    installed: () => installed,
    met: () => met,
    install: (next) => {
      installed = next;
    },
  };
}

function keyOf({ network, address }: OwnAddress): string {
  return `${network} ${address}`;
}

/** Tells the operator what happened and what to do. */
export function describeUnvouched({ network, projectId, address }: Omit<OwnAddress, 'account'>, lack: string): string {
  return `the address ${address} of ${encodeId('prj', projectId)} on ${network} is not signed: ${lack}. If it is yours, sign and install a manifest that lists it; if not, the database was changed directly. See "address-not-vouched" in docs/reference/alarms.md`;
}

/**
 * Returns the checks for the operators' connection pools. Operators must be able to see unsigned addresses, but in `enforce` mode they
 * can't add them or create invoices on them.
 */
export function guardAdditions({
  mode,
  lackOf,
  lackOfRule,
}: Pick<AddressGuard, 'mode' | 'lackOf' | 'lackOfRule'>): AddressChecks {
  if (mode !== 'enforce') return {};
  return {
    refuseNew: lackOf,
    refuseRule: lackOfRule,
    passesOver: (own, statement) => OFFERED.includes(statement) && lackOf(own) !== null,
    refuse: (own, statement) => {
      const lack = statement === ADDING ? lackOf(own) : null;
      return lack && `${describeUnvouched(own, lack)}. It was not added`;
    },
  };
}

/** Returns the same checks for a command, using the manifest installed on this machine. */
export async function guardCommand(settings: ManifestSettings | null): Promise<AddressChecks> {
  if (settings?.mode !== 'enforce') return {};
  const guard = createAddressGuard(settings, () => undefined);
  const read = await readInstalled(settings, { ledgerId: null, now: null });
  if (read.kind === 'ok') guard.install(read.installed);
  return guardAdditions(guard);
}
