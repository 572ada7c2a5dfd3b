/** The file with the service's rights, which `npm run schema:record` brings up to date. */
export const GRANTS_FILE = new URL('../../deploy/roles.sql', import.meta.url);

/** The columns that only the owner of the tables changes, although the guards of these tables let them change. */
export const OF_OWNER: Readonly<Record<string, readonly string[]>> = {
  account_keys: ['first_index', 'mac'],
  addresses: ['barred_at', 'mac'],
  invoices: ['expires_at', 'mac'],
  ledger_identity: ['closed_at', 'first_index'],
  notifications: ['mac'],
  projects: ['allocation_epoch'],
  receipt_keys: ['mac'],
  set_aside: ['mac'],
};

/** The recorded part of the file follows this comment, up to the next empty line. */
const MARK = '\n-- "npm run schema:record" writes the following grants.\n';

/**
 * Returns the text of deploy/roles.sql for a schema, as in migrations/schema.json. A guard such as `keep_columns('revoked_at', 'mac')` names
 * the columns that can change, and the service may update them unless they are the owner's. Rows of which only `mac` can change are permanent:
 * the owner seals them again.
 */
export function recordGrants(text: string, schema: Readonly<Record<string, string>>): string {
  const [before, after] = text.split(MARK);
  if (after === undefined) throw new Error(`deploy/roles.sql no longer contains this line: ${MARK.trim()}`);
  const grants = Object.entries(schema).flatMap(([object, definition]) => {
    const [, table = ''] = /^trigger (\w+)\.\w+_keeps?_what_/.exec(object) ?? [];
    const [, named = ''] = /keep_columns\((.+)\)$/.exec(definition) ?? [];
    if (table === '') return [];
    const changing = [...named.matchAll(/'(\w+)'/g)].map(([, column = '']) => column);
    const granted = changing.filter((column) => OF_OWNER[table]?.includes(column) !== true);
    if (changing.join() === 'mac' || granted.length === 0) return [];
    return [`grant update (${granted.join(', ')}) on ${table} to quittance_runtime;`];
  });
  const wrapped = grants.map((grant) => grant.replace(/(.{80,120}[,)]) /g, '$1\n  '));
  return [before, MARK, wrapped.join('\n'), after.slice(after.indexOf('\n\n'))].join('');
}
