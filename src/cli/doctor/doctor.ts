import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { writeText } from '../../faces/operator/command-words.ts';
import { type DoctorDatabase, doctorSettings, type State } from '../../faces/operator/doctor/check.ts';
import { type CheckView, type DoctorView, gatherChecks, runDoctor } from '../../faces/operator/doctor/run-doctor.ts';
import { printable } from '../../faces/operator/input/problems.ts';
import type { Config } from '../../server/config/config.ts';
import { describeError } from '../terminal/describe-error.ts';
import { explainDatabaseError } from '../terminal/explain-database-error.ts';
import { loadConfig } from '../terminal/load-config.ts';
import { configuredNetworks, findNetworkConfig } from '../terminal/select-network.ts';
import { cliActor, type Result, type Terminal } from '../terminal/terminal.ts';

import { now, withDatabase } from '../terminal/with-database.ts';

/**
 * Checks run in parallel, so they need several connections. A starting instance accepts commands within seconds. If it doesn't, that is the
 * problem to report.
 */
const OPENING = { takesAnySchema: true, poolSize: 8, patienceMs: 2000 };
/** A hanging connection may take a long time to close, and the findings shouldn't wait for it. */
const CLOSING_MS = 1000;

/** Checks everything around this environment's service, with or without its database. */
export async function printDoctor(terminal: Terminal): Promise<Result> {
  const config = loadConfig(terminal);
  const settings = doctorSettings(config, await findNetworks(config));
  const actor = cliActor(terminal);
  const around = {
    ...{ settings, now, random: randomBytes, nodeVersion: process.versions.node },
    describeError: (error: unknown) => describeError(explainDatabaseError(error, config)).message,
  };
  const examine = (database: DoctorDatabase | { problem: string }) => runDoctor({ ...around, database }, actor);
  const view = await new Promise<DoctorView>((resolve, reject) => {
    let isOpen = false;
    const work = async (database: DoctorDatabase) => {
      isOpen = true;
      const found = await examine(database);
      void delay(CLOSING_MS, undefined, { ref: false }).then(() => resolve(found));
      return found;
    };
    withDatabase(terminal, work, OPENING)
      .catch((error: unknown) => {
        if (isOpen) throw error;
        return examine({ problem: describeError(error).message });
      })
      .then(resolve, reject);
  });
  return { data: view, text: describe(view), hasFailed: !view.good };
}

/** A sandbox's networks are known only while it's running. */
async function findNetworks(config: Config) {
  try {
    const found = await Promise.all(
      configuredNetworks(config).map(async (network) => ({ network, ...(await findNetworkConfig(config, network)) })),
    );
    return { networks: found, sandboxUrl: config.sandbox ? (found[0]?.publicUrl ?? null) : null, problem: null };
  } catch (error) {
    return { networks: [], sandboxUrl: null, problem: describeError(error).message };
  }
}

const HEADINGS: Readonly<Record<State, string>> = {
  failed: 'FAILED',
  warning: 'WARNING',
  good: 'GOOD',
  skipped: 'NOT CHECKED',
};

function describe({ checks, counts }: DoctorView): string[] {
  const groups = (Object.keys(HEADINGS) as State[]).flatMap((state) => {
    const found = checks.filter((check) => check.state === state);
    return found.length === 0 ? [] : [[HEADINGS[state], ...gatherChecks(found).map(describeCheck)].join('\n')];
  });
  const sum = `${counts.failed} failed, ${counts.warning} warnings, ${counts.good} good, ${counts.skipped} not checked`;
  return [...groups, sum];
}

function describeCheck({ name, says, fix }: CheckView): string {
  const line = `  ${name}: ${printable(writeText(says))}`;
  return fix === null ? line : `${line}\n    → ${printable(writeText(fix))}`;
}
