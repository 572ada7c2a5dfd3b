import type { Database } from '../../../core/store/db/database.ts';
import { refuseChangedSchema } from '../../../core/store/db/schema-changes.ts';
import type { Actor } from '../actor.ts';

/** Reports which migrations were applied, and throws `SCHEMA_CHANGED` if anything else has changed the schema. */
export async function checkSchema(
  { db, kind, applied }: { db: Database; kind: 'external' | 'embedded'; applied: readonly string[] },
  _actor: Actor,
) {
  await db.snapshot(refuseChangedSchema);
  return { database: kind, applied: [...applied] };
}
