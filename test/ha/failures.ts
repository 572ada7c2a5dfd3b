import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../../deploy/ha/cluster.ts';
import type { Member } from '../../deploy/ha/member.ts';
import { processTree, send } from '../../deploy/ha/program.ts';
import { eventually } from '../support/service.ts';

/** Longer than Patroni's `loop_wait`. */
const ROUND_MS = 6000;
const ROUND_LIMIT_MS = 20_000;
/** Shorter than Patroni waits for its PostgreSQL. */
const CUT_OFF_MS = 3000;

/** A way to damage a cluster. `heal` restores the damaged part; the cluster is whole some time later. */
export type Failure = {
  name: string;
  /**
   * Whether another member must be promoted meanwhile. `perhaps` if several machines fail at once: then no member may be known to have
   * everything, and the service waits for the machine, which is right as long as nothing is lost.
   */
  promotes: 'yes' | 'no' | 'perhaps';
  strike(cluster: Cluster, primary: Member): Promise<{ heal(): Promise<void> }>;
};

/** `kill -9` leaves a process no time to say or write anything. SIGSTOP simulates a machine that doesn't answer and returns later. */
export const FAILURES: readonly Failure[] = [
  {
    name: 'PostgreSQL of the primary killed',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      signalAll(await postgresOf(primary), 'SIGKILL');
      return { heal: async () => undefined };
    },
  },
  {
    name: 'Patroni of the primary killed, its PostgreSQL goes on',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      signalAll(patroniOf(primary), 'SIGKILL');
      return { heal: () => primary.start() };
    },
  },
  {
    name: 'machine of the primary killed',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      signalAll(await allOf(primary), 'SIGKILL');
      return { heal: () => primary.start() };
    },
  },
  {
    name: 'machine of the primary frozen, and back later',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      const frozen = await allOf(primary);
      signalAll(frozen, 'SIGSTOP');
      return { heal: async () => signalAll(frozen, 'SIGCONT') };
    },
  },
  {
    name: 'machine of the primary frozen while its Patroni is about to renew its lock, and back later',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      // In each round, Patroni reads who holds the lock, checks its PostgreSQL, and renews the lock. It must not carry out plans from
      // before it was frozen when it wakes up.
      await untilRoundEnds(primary);
      const postgres = await postgresOf(primary);
      signalAll(postgres, 'SIGSTOP');
      await delay(ROUND_MS);
      const patroni = patroniOf(primary);
      signalAll(patroni, 'SIGSTOP');
      return { heal: async () => signalAll([...patroni, ...postgres], 'SIGCONT') };
    },
  },
  {
    name: 'standbys cut off for 3 s, and then the machine of the primary killed',
    promotes: 'perhaps',
    strike: async (cluster, primary) => {
      const standbys = cluster.members.filter((member) => member !== primary);
      const first = (await Promise.all(standbys.map((member) => member.postgresPid()))).filter((pid) => pid !== null);
      // The receivers of the log end, and data in transit is lost; nothing starts new ones.
      signalAll(first, 'SIGSTOP');
      try {
        for (const pid of first) signalAll(await receiversOf(pid), 'SIGTERM');
        // Writes acknowledged meanwhile would exist on only one machine.
        await delay(CUT_OFF_MS);
        signalAll(await allOf(primary), 'SIGKILL');
      } finally {
        signalAll(first, 'SIGCONT');
      }
      return { heal: () => primary.start() };
    },
  },
  {
    name: 'machine of the synchronous standby killed',
    promotes: 'no',
    strike: async (cluster) => {
      const states = await cluster.look();
      const standby = cluster.members.find((_, index) => states[index]?.sync_standby === true);
      if (standby === undefined) throw new Error('there is no synchronous standby to kill');
      signalAll(await allOf(standby), 'SIGKILL');
      return { heal: () => standby.start() };
    },
  },
  {
    name: 'planned switchover',
    promotes: 'yes',
    strike: async (_cluster, primary) => {
      const response = await fetch(`${primary.restUrl}/switchover`, {
        method: 'POST',
        body: JSON.stringify({ leader: primary.name }),
      });
      if (response.status !== 200) throw new Error(`the switchover was refused: ${await response.text()}`);
      return { heal: async () => undefined };
    },
  },
];

/** Waits until a primary's Patroni has renewed its lock and sleeps. */
async function untilRoundEnds({ logFile }: Member): Promise<void> {
  const rounds = async () => (await readFile(logFile, 'utf8')).split('the leader with the lock').length;
  const before = await rounds();
  await eventually(rounds, (count) => count > before, ROUND_LIMIT_MS);
}

/** Patroni comes first, so that it doesn't notice the others ending. */
async function allOf(member: Member): Promise<number[]> {
  return [...patroniOf(member), ...(await postgresOf(member))];
}

function patroniOf(member: Member): number[] {
  const pid = member.patroniPid();
  return pid === null ? [] : [pid];
}

async function postgresOf(member: Member): Promise<number[]> {
  const pid = await member.postgresPid();
  return pid === null ? [] : processTree(pid);
}

async function receiversOf(postgresPid: number): Promise<number[]> {
  const processes = await processTree(postgresPid);
  const titles = await Promise.all(processes.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
  return processes.filter((_, index) => titles[index]?.includes('walreceiver'));
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  if (pids.length === 0) throw new Error('there is no process to hurt');
  for (const pid of pids) send(pid, signal);
}
