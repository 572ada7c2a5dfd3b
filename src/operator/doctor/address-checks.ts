import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { NETWORKS } from '../../domain/network.ts';
import { createAddressGuard } from '../../payments/manifest/address-guard.ts';
import { readInstalled } from '../../payments/manifest/read-installed.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import { listStored } from '../../store/ledger/addresses.ts';
import { type Check, failed, good, skipped, warning, worstOf } from './check.ts';
import { findSwept } from './database-queries.ts';

const SOON_MS = 14 * 86_400_000;
const MAX_TOLD = 3;

export const addressesAttested: Check = {
  name: 'addresses-attested',
  needs: 'schema',
  look: async (look) => {
    const { settings, read, now, isLive } = look;
    const { addressManifest } = settings;
    const draft = say`To list what is missing, run "${{ command: 'manifest draft' }}". See "Signed addresses" in docs/operations.md.`;
    if (addressManifest === null) {
      const says = 'no addresses are signed, so an attacker with database access can insert their own';
      return isLive ? warning(says, draft) : skipped(`${says}; no main network is configured here`);
    }
    const identity = await read(findLedgerIdentity);
    const installed = await readInstalled(addressManifest, { ledgerId: identity?.id ?? null, now: now() });
    if (installed.kind === 'refused') return failed(installed.reason, draft);
    const guard = createAddressGuard(addressManifest, () => undefined);
    guard.install(installed.installed);
    const { unvouched, count } = await read(async (tx) => {
      const found: string[] = [];
      let all = 0;
      for (const network of NETWORKS.filter(guard.isGuarded)) {
        for await (const batch of listStored(tx, network)) {
          const used = batch.filter(({ isRetired }) => !isRetired);
          all += used.length;
          found.push(...used.filter((own) => guard.lackOf(own) !== null).map(({ address }) => address));
        }
      }
      return { unvouched: found, count: all };
    });
    if (unvouched.length > 0) {
      const says = `the current manifest lacks ${unvouched.length} of the active addresses: ${unvouched.slice(0, MAX_TOLD).join(', ')}`;
      return failed(
        says,
        say`If they are yours, sign a manifest that contains them. If not, someone wrote to the database. ${draft}`,
      );
    }
    const { serial, notAfter } = installed.installed.manifest;
    const leftMs = Date.parse(notAfter) - now();
    if (leftMs < SOON_MS) {
      const says = `the manifest (serial ${serial}) ${leftMs < 0 ? 'expired on' : 'expires on'} ${notAfter}`;
      return warning(says, say`Review it, then sign and install a new one. ${draft}`);
    }
    return good(`the manifest (serial ${serial}) contains all ${count} active addresses`);
  },
};

export const addressesOwn: Check = {
  name: 'addresses-own',
  needs: 'schema',
  look: async ({ read }) => {
    const findings = (await read(findSwept)).map(({ address, projectId, sweeps, toAddress }) => {
      const says = `${address} of ${encodeId('prj', projectId)} looks like a deposit address of an exchange: ${sweeps} times all money left within six hours, to ${toAddress}`;
      const fix = say`If none of your programs does that, the exchange holds the money and may reject or lose payments. Add an address of your own wallet ("${{ command: 'address add' }}"), and retire this one ("${{ command: 'address retire' }}").`;
      return warning(says, fix);
    });
    return worstOf(findings, good('no active address is emptied the way an exchange empties deposit addresses'));
  },
};
