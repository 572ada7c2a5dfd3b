import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createLogger } from '../../src/runtime/log.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded.ts';
import type { PostgresConnection } from '../../src/store/embedded-connection.ts';
import { createTemplate } from './postgres-template.ts';

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresConnection;
    /** A directory of this test run, deleted at its end. */
    runDirectory: string;
  }
}

/** Starts one PostgreSQL for the whole run, with a template database that has every migration. Several runs may go on side by side. */
export default async function setUpPostgres(project: TestProject): Promise<() => Promise<void>> {
  await removeRemains();
  const parent = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    await rm(parent, { recursive: true, force: true });
  };
  try {
    // Root's PostgreSQL runs as another user, which mkdtemp's mode 0700 would shut out.
    await chmod(parent, 0o711);
    const log = createLogger({ level: 'warn' });
    postgres = await startEmbeddedPostgres({ dataDir: join(parent, 'data'), log, isDurable: false });
    await createTemplate(postgres.connection);
    project.provide('postgres', postgres.connection);
    project.provide('runDirectory', parent);
    // A watched run that starts over has other source.
    project.onTestsRerun(() => rm(join(parent, 'command'), { recursive: true, force: true }));
    return tearDown;
  } catch (error) {
    await tearDown();
    throw error;
  }
}

const PREFIX = 'quittance-test-';

/** Directories of runs that were killed; their name holds the process id. */
async function removeRemains(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = Number(new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1]);
    if (pid > 1 && !isRunning(pid)) await rm(join(tmpdir(), name), { recursive: true, force: true }).catch(() => {});
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
