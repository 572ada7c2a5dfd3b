import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import { unlimitedNode } from '../../src/domain/node.ts';
import { unixMs } from '../../src/domain/time.ts';
import { commandActor } from '../../src/operator/actor.ts';
import { writeText } from '../../src/operator/command-words.ts';
import type { DoctorDeps, DoctorSettings, State } from '../../src/operator/doctor/check.ts';
import { type DoctorView, runDoctor } from '../../src/operator/doctor/run-doctor.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { createSeals } from '../../src/store/db/seals.ts';
import { runSql } from '../contract/sql.ts';
import { TEST_KEY_RING } from '../support/key-ring.ts';
import type { TestService } from '../support/service.ts';

/** What a planted fault changes around the doctor; the rest it changed itself. `undo` puts that right. */
export type Planted = {
  settings?: Partial<DoctorSettings>;
  deps?: Partial<DoctorDeps>;
  /** Whose database is looked at. */
  connection?: string;
  undo?: () => Promise<unknown>;
};

/** What is wrong, and which check must say so: in which state, and with which words of its fix. */
export type Fault = {
  title: string;
  check: string;
  state: State;
  fix: RegExp;
  plant(service: TestService): Promise<Planted> | Planted;
};

export const MASTER_KEY = TEST_KEY_RING.current().bytes.toString('base64');

/** The service's own settings, as the command makes them out of the environment. */
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

/** Runs the doctor beside a service, as its own user of the database, and with a Node.js that is looked after. */
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

/** What one check said, in words. */
export function told({ checks }: DoctorView, name: string): { state: State; says: string; fix: string } {
  const found = checks.find((check) => check.name === name);
  if (found === undefined) throw new Error(`there is no check ${name}`);
  return { state: found.state, says: writeText(found.says), fix: writeText(found.fix ?? '') };
}

/** Plants a fault, and expects that its check names it; afterwards all is right again. */
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

/** As the owner of the tables, past every guard. */
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
