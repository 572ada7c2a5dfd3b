import { createHash } from 'node:crypto';
import type { LogoType } from '../../domain/brand/logo.ts';
import type { Sql } from '../db/database.ts';
import { rowOf } from '../db/rows-of.ts';
import { statement, text } from '../db/statement.ts';

/** `content` has at most `MAX_LOGO_BYTES`. */
export type Logo = { type: LogoType; content: Buffer };

const insert = statement(
  'logo-insert',
  {},
  'insert into logos (id, type, content) values ($1, $2, $3) on conflict (id) do nothing',
);

/** Stores a logo. A logo's id is the first 32 hex characters of the SHA-256 of its bytes. */
export async function insertLogo(db: Sql, { type, content }: Logo): Promise<string> {
  const id = createHash('sha256').update(content).digest('hex').slice(0, 32);
  await db.run(insert, [id, type, content]);
  return id;
}

export const findLogo = rowOf(
  'logo-select',
  { type: text<LogoType>(), content: 'bytea' },
  `select type, content from logos where id = $1 and id = encode(substring(sha256(content) for 16), 'hex')`,
  (id: string) => [id],
);
