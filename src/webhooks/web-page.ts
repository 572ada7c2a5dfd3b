import { redactAnswer } from './redact.ts';

/** The tags that pages begin with, and what PHP prints before an error. XML of a receiver, such as `<Response/>`, begins with none of them. */
const PAGE =
  /^(?:\s|<!--[\s\S]*?-->|<\?xml[^>]*>)*<(?:!doctype\s+html|(?:html|head|body|title|meta|link|script|style|div|center|table|form|h1|br)[\s/>])/i;
const TITLE = /<title[^>]*>\s*([^<]+)/i;
const UNSEEN = /<(script|style|head)\b[\s\S]*?(?:<\/\1\s*>|$)|<!--[\s\S]*?(?:-->|$)|<[^>]*>?/gi;
const MAX_QUOTED = 80;

/**
 * The title of a web page, or its first words; `null` for an answer that is not a page. The content type decides nothing, because PHP calls
 * everything `text/html`, also the `ok` of a receiver. `answer` is redacted.
 */
export function quotePage(answer: string | null): string | null {
  if (answer === null || !PAGE.test(answer)) return null;
  const words = (TITLE.exec(answer)?.[1] ?? answer.replace(UNSEEN, ' ')).trim().split(/\s+/).join(' ');
  if (words === '') return 'a page without text';
  return words.length > MAX_QUOTED ? `${words.slice(0, MAX_QUOTED - 1)}…` : words;
}

/** The error of an attempt that a web page answered, where that counts as a failure: in tests and notifications. */
export function refusePage(answer: Uint8Array): string | null {
  return quotePage(redactAnswer(answer)) === null ? null : REFUSED;
}

const REFUSED =
  'web_page: the endpoint answered 2xx with a web page, such as a login page; no webhook receiver answers like that';
