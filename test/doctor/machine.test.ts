import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { startDevnet } from '@quittance/devnet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import type { DoctorNetwork } from '../../src/faces/operator/doctor/check.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { examine, expectNamed, type Fault, settingsOf, told } from './doctored.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ nodeCount: 2 });
});
afterAll(() => service.stop());

const HOUR_MS = 3_600_000;
const at = (byMs: number) => ({ deps: { now: () => unixMs(Date.now() + byMs) } });

/** Presents the same nodes as those of a real network, whose time is compared. */
const asNetwork = (running: TestService, network: 'mainnet' | 'nile', changes: Partial<DoctorNetwork> = {}) => ({
  networks: settingsOf(running).networks.map((each) => ({ ...each, network, ...changes })),
});

const nodesOf = (running: TestService) => settingsOf(running).networks.flatMap(({ nodes }) => nodes);

/** Starts a node that answers slowly. */
async function startSlowNode(target: string): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer(async (asked, response) => {
    const body = Buffer.concat(await asked.toArray());
    await delay(1200);
    const answer = await fetch(`${target}${asked.url}`, { method: 'POST', body });
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const FAULTS: Fault[] = [
  {
    ...{
      title: 'a variable that nobody knows',
      check: 'configuration',
      state: 'warning',
      fix: /Correct these variables/,
    },
    plant: () => ({ settings: { warnings: ['QUITTANCE_PROT is not known'] } }),
  },
  {
    ...{ title: 'a dead release of Node.js', check: 'node-release', state: 'warning', fix: /Node\.js/ },
    plant: () => ({ deps: { nodeVersion: '18.20.4' } }),
  },
  {
    ...{ title: 'a dead release of Node.js with real money', check: 'node-release', state: 'failed', fix: /Node\.js/ },
    plant: (running) => ({ deps: { nodeVersion: '18.20.4' }, settings: asNetwork(running, 'mainnet') }),
  },
  {
    ...{ title: 'a clock that is behind the database', check: 'clock-database', state: 'failed', fix: /chrony/ },
    plant: () => at(-HOUR_MS),
  },
  {
    ...{ title: 'a clock that is ahead of the database', check: 'clock-database', state: 'failed', fix: /chrony/ },
    plant: () => at(HOUR_MS),
  },
  {
    ...{ title: 'a clock that is behind the chain', check: 'clock-chain', state: 'failed', fix: /chrony/ },
    plant: (running) => ({ ...at(-24 * 365 * HOUR_MS), settings: asNetwork(running, 'nile') }),
  },
  {
    ...{ title: 'a clock that is ahead of the chain', check: 'clock-chain', state: 'failed', fix: /chrony/ },
    plant: (running) => ({ ...at(24 * 365 * HOUR_MS), settings: asNetwork(running, 'nile') }),
  },
  {
    ...{
      title: 'one node of two that is away',
      check: 'nodes-answer',
      state: 'warning',
      fix: /QUITTANCE_DEVNET_NODES/,
    },
    plant: (running) => {
      running.nodes[1]?.setFault({ kind: 'unavailable-503' });
      return { undo: async () => running.nodes[1]?.setFault() };
    },
  },
  {
    ...{ title: 'no node that answers', check: 'nodes-answer', state: 'failed', fix: /QUITTANCE_DEVNET_NODES/ },
    plant: (running) => {
      for (const node of running.nodes) node.setFault({ kind: 'hang' });
      const undo = async () => {
        for (const node of running.nodes) node.setFault();
      };
      return { undo };
    },
  },
  {
    ...{ title: 'nodes of another network', check: 'nodes-genesis', state: 'failed', fix: /QUITTANCE_NILE_NODES/ },
    plant: (running) => ({ settings: asNetwork(running, 'nile') }),
  },
  {
    ...{ title: 'one operator for real money', check: 'nodes-operators', state: 'failed', fix: /another operator/ },
    plant: (running) => ({
      settings: asNetwork(running, 'mainnet', { agreement: 1, nodes: nodesOf(running).slice(0, 1) }),
    }),
  },
  {
    ...{
      title: 'two operators of whom one is believed',
      check: 'nodes-operators',
      state: 'warning',
      fix: /QUITTANCE_AGREEMENT/,
    },
    plant: (running) => ({ settings: asNetwork(running, 'mainnet', { agreement: 1 }) }),
  },
  {
    ...{ title: 'a node that is late', check: 'nodes-fresh', state: 'warning', fix: /catching up/ },
    plant: (running) => {
      running.devnet.mine(40);
      running.nodes[1]?.setFault({ kind: 'lag', blocks: 30 });
      return { undo: async () => running.nodes[1]?.setFault() };
    },
  },
  {
    ...{ title: 'a node that is slow', check: 'nodes-latency', state: 'warning', fix: /faster node/ },
    plant: async (running) => {
      const slow = await startSlowNode(running.devnet.url);
      const nodes = [unlimitedNode(slow.url)];
      return { settings: { networks: [{ network: 'devnet', agreement: 1, nodes }] }, undo: slow.stop };
    },
  },
  {
    ...{ title: 'a node that takes few requests a day', check: 'nodes-budget', state: 'warning', fix: /daily=/ },
    plant: (running) => {
      const nodes = nodesOf(running).map((node) => ({ ...node, requestsPerDay: 5000 }));
      return { settings: { networks: [{ network: 'devnet', agreement: 2, nodes }] } };
    },
  },
  {
    ...{ title: 'two nodes of two chains', check: 'nodes-agree', state: 'failed', fix: /explorer/ },
    plant: async (running) => {
      const other = await startDevnet({ dataDir: null, blockMs: 0, producers: 5 });
      other.mineUntilSolid();
      const nodes = [...nodesOf(running), unlimitedNode(other.url)];
      return { settings: { networks: [{ network: 'devnet', agreement: 2, nodes }] }, undo: () => other.stop() };
    },
  },
];

test.each(FAULTS)('$title is named by $check', (fault) => expectNamed(service, fault));

test('nodes of two operators that agree, and a clock that is right, are good', async () => {
  const view = await examine(service);
  for (const name of [
    'configuration',
    'node-release',
    'clock-database',
    'nodes-answer',
    'nodes-genesis',
    'nodes-agree',
  ]) {
    expect(told(view, name).state, name).toBe('good');
  }
  expect(told(view, 'clock-chain').state).toBe('skipped');
});

test('without any node that answers, no check says that no network is configured', async () => {
  for (const node of service.nodes) node.setFault({ kind: 'hang' });
  try {
    const view = await examine(service);
    expect(told(view, 'nodes-genesis')).toMatchObject({
      state: 'skipped',
      says: expect.stringContaining("didn't return its first block"),
    });
  } finally {
    for (const node of service.nodes) node.setFault();
  }
});

test('without a database the rest is looked at, and what needs one says why it was not', async () => {
  const view = await examine(service, { deps: { database: { problem: 'nothing listens there' } } });
  expect(told(view, 'database')).toMatchObject({
    state: 'failed',
    says: 'nothing listens there',
    fix: expect.stringMatching(/DATABASE_URL/),
  });
  expect(told(view, 'nodes-answer').state).toBe('good');
  for (const name of ['migrations', 'master-key', 'capacity', 'backup-age', 'addresses-own', 'clock-database']) {
    expect(told(view, name)).toMatchObject({ state: 'skipped', says: expect.stringContaining('database') });
  }
  expect(view.good).toBe(false);
});
