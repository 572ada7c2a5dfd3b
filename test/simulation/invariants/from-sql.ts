import type { Invariant, Truth } from '../truth.ts';
import { feed } from './feed.ts';

/** An invariant whose check is a query over the books and the world's own knowledge (schema `witness`, see `witness.ts`). */
export type SqlInvariant = Invariant & {
  /** One column `detail`, with a row for each violation. */
  body: string;
  /** An additional check of data that is only in the world's memory. */
  also: Invariant['check'];
};

type Parts = Pick<SqlInvariant, 'number' | 'title' | 'when' | 'body'> & { also?: Invariant['check'] };

/** The query is a function in the database, so that it's planned once for a world and many run in one round trip. */
export function fromSql({ also = async () => [], ...parts }: Parts): SqlInvariant {
  const check = async (truth: Truth) => {
    await feed(truth);
    const rows = await truth.query(`select detail from ${functionName(parts)}() as detail`);
    return [...rows.map(({ detail }) => String(detail)), ...(await also(truth))];
  };
  return { ...parts, also, check };
}

function functionName({ number }: Pick<SqlInvariant, 'number'>): string {
  return `witness.invariant_${number}`;
}

/** Stable, so that all functions in one statement see the books at the same moment. */
export function declare(invariant: SqlInvariant): string {
  return `create function ${functionName(invariant)}() returns setof text stable language plpgsql as $function$
    begin return query ${invariant.body}; end $function$;`;
}

/** Combines all of these in one statement, which returns the number and detail of each violation. */
export function selectAll(invariants: readonly SqlInvariant[]): string {
  return invariants
    .map((invariant) => `select ${invariant.number} as number, detail from ${functionName(invariant)}() as detail`)
    .join(' union all ');
}
