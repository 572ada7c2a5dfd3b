import { say } from '../../domain/message.ts';
import { shorten } from '../input/clip.ts';
import { showCapacity } from '../subjects/capacity.ts';
import { type ListedProjectView, listProjects } from '../subjects/projects.ts';
import { listEndpoints } from '../subjects/webhooks.ts';
import { type Check, type Finding, failed, good, type Look, skipped, spell, warning, worstOf } from './check.ts';

const NO_PROJECT = skipped('there is no project yet');

async function ofProjects(look: Look, judge: (project: ListedProjectView) => Promise<Finding[]>): Promise<Finding[]> {
  const { data } = await look.read((tx) => listProjects.run({ db: tx }, look.actor, { isArchived: false }));
  const findings: Finding[] = [];
  for (const project of data) findings.push(...(await judge(project)));
  return findings;
}

/** For so long a receiver may be down for an update. */
const OUTAGE_MS = 3_600_000;

export const receivers: Check = {
  name: 'receivers',
  needs: 'schema',
  look: async (look) => {
    const { read, now, actor } = look;
    const findings = await ofProjects(look, async ({ projectId }) => {
      const { data } = await read((tx) => listEndpoints.run({ db: tx, now }, actor, { projectId }));
      return data.map(
        ({ endpointId, url, status, failingSince, undelivered, disabledReason, lastAttempt }): Finding => {
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
        },
      );
    });
    return worstOf(findings, skipped('no project has a webhook endpoint'));
  },
};

export const capacity: Check = {
  name: 'capacity',
  needs: 'schema',
  look: async (look) => {
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
  },
};

export const supportContact: Check = {
  name: 'support-contact',
  needs: 'schema',
  look: async (look) => {
    const findings = await ofProjects(look, async ({ projectId, name, supportContact: contact }) => {
      if (contact !== null) return [good('payers see a support contact')];
      const says = `${projectId} (${shorten(name, 40)}) has no support contact, so payers who need help see only its name`;
      const fix = say`Set one: "${{ command: 'project update', args: [projectId], input: { support: 'help@…' } }}".`;
      return [warning(says, fix)];
    });
    return worstOf(findings, NO_PROJECT);
  },
};
