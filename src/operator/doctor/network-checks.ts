import { alarmRow } from '../../domain/alarm-kinds.ts';
import { say } from '../../domain/message.ts';
import { NETWORKS } from '../../domain/network.ts';
import { findWatchedNetworks } from '../../store/chain/watched-networks.ts';
import { showStatus } from '../subjects/chain.ts';
import { type Check, type Finding, failed, good, type Look, skipped, spell, warning, worstOf } from './check.ts';

export const networksWatched: Check = {
  name: 'networks-watched',
  needs: 'schema',
  look: async ({ read, now }) => {
    const found = (await read(findWatchedNetworks)).filter(({ takesMoney }) => takesMoney);
    const findings = found.map(({ network, isWatched, isSilent, seenAt }): Finding => {
      if (isWatched) return good(`${network} is watched`);
      const since = seenAt === null ? 'and never had one' : `since ${spell(now() - seenAt)}`;
      const says = `${network} has active addresses but no running watcher, ${since}`;
      const fix = `Start a process with the role watcher and QUITTANCE_${network.toUpperCase()}_NODES, or retire the addresses.`;
      return isSilent ? failed(says, fix) : warning(says, fix);
    });
    return worstOf(findings, skipped('no network has an active address'));
  },
};

export const chain: Check = {
  name: 'chain',
  needs: 'schema',
  look: async (look) => {
    const findings: Finding[] = [];
    for (const { network } of look.settings.networks) findings.push(await lookAtChain(look, network));
    return worstOf(findings, skipped("no network is configured here, or its nodes aren't known"));
  },
};

async function lookAtChain({ read, now, actor }: Look, network: (typeof NETWORKS)[number]): Promise<Finding> {
  const { view, state } = await read((tx) => showStatus({ db: tx, now }, actor, { network }));
  const status = say`For details, see "${{ command: 'chain status' }}".`;
  if (view.halt !== null) {
    const fix = say`Find out which is right, the ledger or the chain. When it is settled, run "${{ command: 'chain resume' }}".`;
    return failed(`${network}: the watcher is halted: ${view.halt.reason}`, fix);
  }
  if (!state.isRunning) return skipped(`no watcher of ${network} is running`);
  if (view.watcher?.blind != null) {
    return failed(`${network}: the chain can't be seen: ${view.watcher.blind}`, say`Check its nodes. ${status}`);
  }
  const [why] = view.behind.why;
  if (why !== undefined) return warning(`${network}: ${why.text}`, status);
  return good(`${network} is recorded up to block ${view.recorded?.number ?? 0}`);
}

export const alarms: Check = {
  name: 'alarms',
  needs: 'schema',
  look: async ({ read, now, actor }) => {
    const findings: Finding[] = [];
    for (const network of NETWORKS) {
      const { view } = await read((tx) => showStatus({ db: tx, now }, actor, { network }));
      for (const { kind, subject, raisedAt } of view.alarms) {
        const says = `${kind} on ${network}${subject === '' ? '' : ` (${subject})`}, since ${raisedAt}`;
        findings.push((alarmRow(kind).rank === 2 ? warning : failed)(says, alarmRow(kind).advice));
      }
    }
    return worstOf(findings, good('there are no open alarms'));
  },
};
