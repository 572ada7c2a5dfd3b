import { decodeId, type IdPrefix } from '../../../src/core/domain/ids.ts';
import type { Invariant, Truth } from '../truth.ts';
import { fromSql } from './from-sql.ts';

const ROWS = fromSql({
  number: 19,
  title: 'no response crosses projects or networks',
  when: 'quiet',
  body: `
    select format('transfer %s of project %s is to an address of %s, of invoice of %s', r.id, r.project_id, a.project_id, i.project_id)
    from transfers r left join addresses a on a.id = r.address_id left join invoices i on i.id = r.invoice_id
    where a.project_id is distinct from r.project_id or i.project_id <> r.project_id
    union all
    select format('invoice %s of project %s is paid to an address of %s', i.id, i.project_id, a.project_id)
    from invoices i left join addresses a on a.id = i.address_id where a.project_id is distinct from i.project_id
    union all
    select format('event %s of project %s is about an invoice of %s', e.id, e.project_id, i.project_id)
    from events e join invoices i on i.id = e.invoice_id where i.project_id <> e.project_id
    union all
    select format('event %s of project %s goes to an endpoint of %s', e.id, e.project_id, w.project_id)
    from deliveries d join events e on e.id = d.event_id join webhook_endpoints w on w.id = d.endpoint_id
    where w.project_id <> e.project_id
    union all
    select format('a row of %s is of network %s', of_table, network)
    from (
      select 'projects' as of_table, network from projects union select 'addresses', network from addresses
      union select 'invoices', network from invoices union select 'transfers', network from transfers
      union select 'events', network from events union select 'chain_cursors', network from chain_cursors) found
    where network <> 'devnet'`,
  also: crossings,
});

const canaries: Invariant = {
  number: 20,
  title: 'canary secrets appear in no log, error, page or plaintext column',
  when: 'quiet',
  check: async (truth) => {
    const isSecret = (text: string) => truth.canaries.some((canary) => text.includes(canary));
    const places: [string, readonly string[]][] = [
      ['a line of the log', truth.lines],
      ['what a caller was shown', truth.shown.map(({ text }) => text)],
      ['a webhook', truth.received.map(({ headers, body }) => JSON.stringify(headers) + Buffer.from(body).toString())],
    ];
    const found = places.flatMap(([place, texts]) =>
      texts.filter(isSecret).map((text) => `${place} holds a secret: ${text.slice(0, 300)}`),
    );
    return [...found, ...(await secretColumns(truth))];
  },
};

/** One project's data is never visible to another, and secrets are visible to no one. */
export const SECLUSION = [ROWS, canaries] as const;

const NAMES: readonly IdPrefix[] = ['inv', 'prj', 'evt', 'whe', 'trf', 'key'];
const NAME = new RegExp(`\\b(${NAMES.join('|')})_[0-9a-z]{26}\\b`, 'g');
const ADDRESS = /\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g;
const EXTERNAL_ID = /"externalId":"([^"]*)"/g;
const CHECKOUT = /\/c\/([1-9A-HJ-NP-Za-km-z]{16,22})\b/g;

/** Returns names of other projects' things in data shown to a project's callers and receivers. */
async function crossings(truth: Truth): Promise<string[]> {
  const rows = await truth.query(`
    select project_id, id::text as name from invoices union all select project_id, external_id from invoices
    union all select project_id, checkout_token from invoices union all select id, id::text from projects
    union all select project_id, id::text from events union all select project_id, id::text from webhook_endpoints
    union all select project_id, id::text from transfers union all select project_id, id::text from api_keys
    union all select project_id, address from addresses`);
  const owners = new Map<string, Set<string>>();
  for (const row of rows) {
    const name = String(row['name']);
    const known = owners.get(name) ?? new Set();
    owners.set(name, known.add(String(row['project_id'])));
  }
  const shown = [
    ...truth.shown,
    ...truth.received.map(({ projectId, body }) => ({ projectId, text: Buffer.from(body).toString() })),
  ];
  return shown.flatMap(({ projectId, text }) =>
    namesIn(text)
      .filter((name) => owners.get(name)?.has(projectId) === false)
      .map((name) => `project ${projectId} was shown ${name}, which is of another: ${text.slice(0, 300)}`),
  );
}

function namesIn(text: string): string[] {
  const ids = [...text.matchAll(NAME)].map(([id, prefix]) => decodeId(prefix as IdPrefix, id) ?? id);
  const quoted = [...text.matchAll(EXTERNAL_ID), ...text.matchAll(CHECKOUT)].map(([, name]) => String(name));
  return [...ids, ...quoted, ...(text.match(ADDRESS) ?? [])];
}

/** Returns tables with a row that contains a canary as text or bytes. */
async function secretColumns(truth: Truth): Promise<string[]> {
  const asBytes = (canary: string) => [
    Buffer.from(canary).toString('hex'),
    ...(canary.startsWith('whsec_') ? [Buffer.from(canary.slice('whsec_'.length), 'base64').toString('hex')] : []),
  ];
  const patterns = truth.canaries
    .flatMap((canary) => [canary, ...asBytes(canary)])
    .map((text) => `%${text.replace(/[\\%_]/g, '\\$&')}%`);
  const tables = await truth.query(
    `select distinct quote_ident(table_name) as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE'`,
  );
  const scan = tables.map(
    ({ name }) =>
      `select '${name}' as name, left(t::text, 300) as text from public.${name} t where t::text like any ($1)`,
  );
  const rows = await truth.query(scan.join(' union all '), [patterns]);
  return rows.map(({ name, text }) => `a row of ${name} holds a secret: ${text}`);
}
