import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { createLogger } from '../../src/core/runtime/log.ts';
import type { PostgresConnection } from '../../src/core/store/embedded/connection.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/core/store/embedded/embedded.ts';
import { createTemplate } from './postgres-template.ts';
import { makeRunDirectory } from './run-directory.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Whether to run all cases of large tables, or some of each kind. */
    everyCase: boolean;
    /** The superuser of the run's server. */
    postgres: PostgresConnection;
    /** The service's user: a member of the group role to which deploy/roles.sql grants its rights. It owns nothing. */
    runtimeUser: Pick<PostgresConnection, 'user' | 'password'>;
    /** A directory of this test run, deleted at its end. */
    runDirectory: string;
  }
}

/** Starts one PostgreSQL for the whole run, with a fully migrated template database. Several runs may be active at once. */
export default async function setUpPostgres(project: TestProject): Promise<() => Promise<void>> {
  const parent = await makeRunDirectory();
  let postgres: EmbeddedPostgres | undefined;
  const tearDown = async () => {
    await postgres?.stop();
    await rm(parent, { recursive: true, force: true });
  };
  try {
    const log = createLogger({ level: 'warn' });
    postgres = await startEmbeddedPostgres({ dataDir: join(parent, 'data'), log, isDurable: false });
    const { owner, connection } = postgres;
    await createTemplate(owner, connection);
    project.provide('postgres', owner);
    project.provide('runtimeUser', { user: connection.user, password: connection.password });
    project.provide('runDirectory', parent);
    // When a watched run restarts, the source has changed.
    project.onTestsRerun(() => rm(join(parent, 'command'), { recursive: true, force: true }));
    return tearDown;
  } catch (error) {
    await tearDown();
    throw error;
  }
}
