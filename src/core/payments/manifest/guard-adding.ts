import type { AddressChecks } from '../../store/db/address-column.ts';
import { ADDING } from '../../store/ledger/addresses.ts';
import { OFFERED_ADDRESSES } from '../../store/ledger/allocation.ts';
import { type AddressGuard, createAddressGuard, describeUnvouched } from './address-guard.ts';
import { type ManifestSettings, readInstalled } from './read-installed.ts';

const OFFERED: readonly string[] = OFFERED_ADDRESSES;

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
