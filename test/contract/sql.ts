import pg from 'pg';
import type { TestService } from '../support/service.ts';

/** Runs one statement on the service's database, for things that only an operator can do. */
export async function runSql(
  service: Pick<TestService, 'ownerString'>,
  text: string,
  values: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: service.ownerString });
  await client.connect();
  try {
    return (await client.query(text, values)).rows;
  } finally {
    await client.end();
  }
}
