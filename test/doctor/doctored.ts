import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { unlimitedNode } from '../../src/core/domain/node.ts';
import { unixMs } from '../../src/core/domain/time.ts';
import { openDatabase } from '../../src/core/store/db/database.ts';
import { createSeals } from '../../src/core/store/db/seals.ts';
import { commandActor } from '../../src/faces/operator/actor.ts';
import { writeText } from '../../src/faces/operator/command-words.ts';
import type { DoctorDeps, DoctorSettings, State } from '../../src/faces/operator/doctor/check.ts';
import { type DoctorView, runDoctor } from '../../src/faces/operator/doctor/run-doctor.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import type { TestService } from '../support/service.ts';

/** The settings with which the doctor runs after a fault was planted. `undo` reverts the changes that planting itself made. */
export type Planted = {
  settings?: Partial<DoctorSettings>;
  deps?: Partial<DoctorDeps>;
  /** The database to check. */
  connection?: string;
  undo?: () => Promise<unknown>;
};

/** A fault, and the check that must find it, with its state and words of its fix. */
export type Fault = {
  title: string;
  check: string;
  state: State;
  fix: RegExp;
  plant(service: TestService): Promise<Planted> | Planted;
};

export const MASTER_KEY = TEST_KEY_RING.current().bytes.toString('base64');

/** Returns the service's own settings as the command reads them from the environment. */
export function settingsOf(service: TestService): DoctorSettings {
  return {
    ...{ masterKeys: [MASTER_KEY], databaseUrl: service.connectionString, dataDir: '/nonexistent' },
    ...{ warnings: [], networkProblem: null, localUrl: service.url, publicUrl: service.url },
    metricsUrl: service.metricsUrl || null,
    networks: [
      {
        network: 'devnet',
        agreement: 2,
        nodes: service.nodes.map(({ url }, index) => unlimitedNode(url, `op${index}`)),
      },
    ],
    ...{ databasePoolSize: 10, trustProxy: [], rowMacs: 'ledger', backups: null, addressManifest: null },
  };
}

/** Runs the doctor beside a service, as the service's database user and with a supported Node.js. */
export async function examine(
  service: TestService,
  { settings, deps, connection = service.connectionString }: Planted = {},
): Promise<DoctorView> {
  const seals = createSeals({ mode: 'ledger', onProblem: () => undefined }, async () => TEST_KEY_RING);
  const db = openDatabase({ connection, poolSize: 8, applicationName: 'doctor', onError: () => undefined, seals });
  try {
    const around: DoctorDeps = {
      settings: { ...settingsOf(service), ...settings },
      database: { kind: 'external', db },
      now: () => unixMs(Date.now()),
      random: randomBytes,
      nodeVersion: '24.9.0',
      describeError: String,
      ...deps,
    };
    return await runDoctor(around, commandActor('test'));
  } finally {
    await db.close();
  }
}

/** Returns the result of one check in words. */
export function told({ checks }: DoctorView, name: string): { state: State; says: string; fix: string } {
  const found = checks.find((check) => check.name === name);
  if (found === undefined) throw new Error(`there is no check ${name}`);
  return { state: found.state, says: writeText(found.says), fix: writeText(found.fix ?? '') };
}

/** Plants a fault, expects that its check finds it, and reverts it. */
export async function expectNamed(service: TestService, { check, state, fix, plant }: Fault): Promise<void> {
  const planted = await plant(service);
  try {
    const found = told(await examine(service, planted), check);
    expect(found, JSON.stringify(found)).toMatchObject({ state, fix: expect.stringMatching(fix) });
    expect(found.says).not.toBe('');
  } finally {
    await planted.undo?.();
  }
}

/**
 * Returns the result of some work and how many seconds it took, counted in ticks of this process. A stall of the machine is one tick,
 * because the work's own time limits don't expire earlier either.
 */
export async function countSeconds<Result>(work: () => Promise<Result>): Promise<{ result: Result; seconds: number }> {
  let seconds = 0;
  const timer = setInterval(() => {
    seconds += 1;
  }, 1000);
  const result = await work().finally(() => clearInterval(timer));
  return { result, seconds };
}

/** Changes rows as the tables' owner, bypassing every guard. */
export async function pastGuards(
  service: TestService,
  table: string,
  text: string,
  values: unknown[] = [],
): Promise<void> {
  await runSql(service, `alter table ${table} disable trigger user`);
  await runSql(service, text, values);
  await runSql(service, `alter table ${table} enable trigger user`);
  if (table === 'invoices') await runSql(service, 'alter table invoices disable trigger invoices_of_a_closed_ledger');
}
