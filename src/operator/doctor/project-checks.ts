import { encodeId } from '../../domain/ids.ts';
import { say } from '../../domain/message.ts';
import { NETWORKS } from '../../domain/network.ts';
import { createAddressGuard } from '../../payments/manifest/address-guard.ts';
import { readInstalled } from '../../payments/manifest/read-installed.ts';
import { addressColumn } from '../../store/db/address-column.ts';
import { findLedgerIdentity } from '../../store/db/ledger-identity.ts';
import { rowsOf } from '../../store/db/rows-of.ts';
import { count } from '../../store/db/statement.ts';
import { listStored } from '../../store/ledger/addresses.ts';
import { outgoingStands, stands } from '../../store/ledger/standing.ts';
import { shorten } from '../input/problems.ts';
import { showCapacity } from '../subjects/capacity.ts';
import { type ListedProjectView, listProjects } from '../subjects/projects.ts';
import { listEndpoints } from '../subjects/webhooks.ts';
import { type Finding, failed, good, type Look, schemaCheck, skipped, spell, warning, worstOf } from './check.ts';

const NO_PROJECT = skipped('there is no project yet');

async function ofProjects(look: Look, judge: (project: ListedProjectView) => Promise<Finding[]>): Promise<Finding[]> {
  const { data } = await look.read((tx) => listProjects.run({ db: tx }, look.actor, { isArchived: false }));
  const findings: Finding[] = [];
  for (const project of data) findings.push(...(await judge(project)));
  return findings;
}

/** For so long a receiver may be down for an update. */
const OUTAGE_MS = 3_600_000;

export const receivers = schemaCheck('receivers', async (look) => {
  const { read, now, actor } = look;
  const findings = await ofProjects(look, async ({ projectId }) => {
    const { data } = await read((tx) => listEndpoints.run({ db: tx, now }, actor, { projectId }));
    return data.map(({ endpointId, url, status, failingSince, undelivered, disabledReason, lastAttempt }): Finding => {
      const name = `${endpointId} (${shorten(url, 80)})`;
      const fix = say`Find out why with "${{ command: 'webhook test', args: [endpointId] }}".`;
      if (status === 'active') {
        const page = lastAttempt?.webPage ?? null;
        if (page === null) return good(`${name} accepts its events`);
        return warning(
          `${name} answered the last event with a web page, “${page}”: the event counts as delivered, but your receiver probably never saw it`,
          fix,
        );
      }
      if (status === 'disabled') {
        const why = disabledReason === null ? '' : `: ${shorten(disabledReason, 100)}`;
        return warning(
          `${name} is disabled${why}`,
          say`After the repair, run "${{ command: 'webhook enable', args: [endpointId] }}".`,
        );
      }
      const since = failingSince === null ? 0 : now() - Date.parse(failingSince);
      const says = `${name} has accepted no events for ${spell(since)}; ${undelivered} are waiting`;
      return since > OUTAGE_MS ? failed(says, fix) : warning(says, fix);
    });
  });
  return worstOf(findings, skipped('no project has a webhook endpoint'));
});

export const capacity = schemaCheck('capacity', async (look) => {
  const { read, now, actor } = look;
  const findings = await ofProjects(look, async ({ projectId, name }) => {
    const view = await read((tx) => showCapacity.run({ db: tx, now }, actor, { projectId }));
    const shown = `${projectId} (${shorten(name, 40)})`;
    const fix = say`Add addresses: "${{ command: 'address add', input: { projectId } }}" or "${{ command: 'address derive', input: { projectId } }}".`;
    if (view.activeAddresses === 0)
      return [warning(`${shown} has no active address, so no invoice can be created`, fix)];
    const used = view.amounts.find(({ free }) => free === 0);
    if (used !== undefined)
      return [
        failed(`${shown} has no payable amount left near ${used.amount} USDT, so Quittance refuses such orders`, fix),
      ];
    if (!view.low) return [good(`${shown} has enough payable amounts`)];
    const left = view.daysLeft === null ? '' : `, for ${Math.floor(view.daysLeft)} days`;
    return [warning(`${shown} has few payable amounts left${left}`, fix)];
  });
  return worstOf(findings, NO_PROJECT);
});

export const supportContact = schemaCheck('support-contact', async (look) => {
  const findings = await ofProjects(look, async ({ projectId, name, supportContact: contact }) => {
    if (contact !== null) return [good('payers see a support contact')];
    const says = `${projectId} (${shorten(name, 40)}) has no support contact, so payers who need help see only its name`;
    const fix = say`Set one: "${{ command: 'project update', args: [projectId], input: { support: 'help@…' } }}".`;
    return [warning(says, fix)];
  });
  return worstOf(findings, NO_PROJECT);
});

const SOON_MS = 14 * 86_400_000;
const MAX_TOLD = 3;

export const addressesAttested = schemaCheck('addresses-attested', async (look) => {
  const { settings, read, now, isLive } = look;
  const { addressManifest } = settings;
  const draft = say`To list what is missing, run "${{ command: 'manifest draft' }}". See docs/guides/signed-addresses.md.`;
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
});

/** Of each project as many of its newest outgoing transfers are looked at, and of each address so many of those. */
const [OF_PROJECT, OF_ADDRESS] = [1000, 20];
const SWEPT_WITHIN = '6 hours';
const LEAST_SWEEPS = 3;
const LEAST_SENDERS = 3;

/**
 * Addresses in use whose money always left soon, all that had come since the last time and to one place, after payments of several senders:
 * as an exchange sweeps the address that it gives a customer to deposit to. At most ten.
 */
const findSwept = rowsOf(
  'doctor-swept',
  { address: 'address', projectId: 'uuid', sweeps: count, toAddress: 'text' },
  `select ${addressColumn('a')} as address, a.project_id, count(*) as sweeps, min(s.to_address) as to_address
   from projects p
   cross join lateral (select distinct n.address_id from (
     select o.address_id from outgoing_transfers o where o.project_id = p.id
     order by o.block_number desc, o.tx_id desc, o.log_index desc limit ${OF_PROJECT}) n) met
   join addresses a on a.id = met.address_id and a.retired_at is null
   cross join lateral (
     select o.to_address, o.amount_micro, o.block_number, o.block_time, lag(o.block_number, 1, -1::int8) over (order by o.block_number) as since
     from (select * from outgoing_transfers o where o.address_id = a.id and ${outgoingStands('o')}
           order by o.block_number desc limit ${OF_ADDRESS}) o) s
   cross join lateral (
     select sum(t.amount_micro) as micro, min(t.block_time) as first_at from transfers t
     where t.address_id = a.id and t.block_number > s.since and t.block_number <= s.block_number and ${stands('t')}) came
   where came.micro = s.amount_micro and s.block_time - came.first_at < interval '${SWEPT_WITHIN}'
   group by a.id
   having count(*) >= ${LEAST_SWEEPS} and count(distinct s.to_address) = 1
     and (select count(distinct f.from_address) from (
       select t.from_address from transfers t where t.address_id = a.id order by t.block_number desc limit 1000) f) >= ${LEAST_SENDERS}
   limit 10`,
  () => [],
);

export const addressesOwn = schemaCheck('addresses-own', async ({ read }) => {
  const findings = (await read(findSwept)).map(({ address, projectId, sweeps, toAddress }) => {
    const says = `${address} of ${encodeId('prj', projectId)} looks like a deposit address of an exchange: ${sweeps} times all money left within six hours, to ${toAddress}`;
    const fix = say`If none of your programs does that, the exchange holds the money and may reject or lose payments. Add an address of your own wallet ("${{ command: 'address add' }}"), and retire this one ("${{ command: 'address retire' }}").`;
    return warning(says, fix);
  });
  return worstOf(findings, good('no active address is emptied the way an exchange empties deposit addresses'));
});
