import { AppError } from '../../domain/errors.ts';
import { spotSecret, spotSecretInNote } from '../input/spot-secret.ts';
import { type AddressEntry, isCsv, readCsvAddresses } from './csv.ts';

/**
 * The addresses of a text with one on each line, where empty lines and what follows a `#` are skipped, or of CSV. `source`: what messages call
 * the text. Secrets come as entries, so that they are refused. Errors: `INVALID_ARGUMENT`.
 */
export function readList(content: string, source: string): AddressEntry[] {
  // A wallet file is one secret, whatever stands on its lines.
  if (/^\s*\{/.test(content) && spotSecret(content) !== null) return [{ text: content, place: source }];
  if (content.includes('\0') || content.startsWith('PK\u0003\u0004')) {
    throw new AppError('INVALID_ARGUMENT', `${source} is no text: save a spreadsheet as CSV first`);
  }
  if (isCsv(content)) return readCsvAddresses(content, source);
  return content.split(/\r?\n/).flatMap((line, index) => {
    const place = `line ${index + 1} of ${source}`;
    const [, text = '', comment = ''] = /^([^#]*)(.*)$/.exec(line) ?? [];
    // It comes as an entry, so that it is refused.
    const secrets = spotSecretInNote(comment) === null ? [] : [{ text: comment, place }];
    return text.trim() === '' ? secrets : [{ text: text.trim(), place }, ...secrets];
  });
}
