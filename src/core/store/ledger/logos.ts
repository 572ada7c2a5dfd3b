import type { LogoType } from '../../domain/brand/logo.ts';
import { rowOf } from '../db/rows-of.ts';
import { text } from '../db/statement.ts';

/** `content` has at most `MAX_LOGO_BYTES`. */
export type Logo = { type: LogoType; content: Buffer };

export const findLogo = rowOf(
  'logo-select',
  { type: text<LogoType>(), content: 'bytea' },
  `select type, content from logos where id = $1 and id = encode(substring(sha256(content) for 16), 'hex')`,
  (id: string) => [id],
);
