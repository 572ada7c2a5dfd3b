import { redactAnswer } from './redact.ts';

/**
 * Matches the tags with which web pages begin, and PHP's output before an error. A receiver's XML, such as `<Response/>`, doesn't begin
 * with any of them.
 */
const PAGE =
  /^(?:\s|<!--[\s\S]*?-->|<\?xml[^>]*>)*<(?:!doctype\s+html|(?:html|head|body|title|meta|link|script|style|div|center|table|form|h1|br)[\s/>])/i;
const TITLE = /<title[^>]*>\s*([^<]+)/i;
const UNSEEN = /<(script|style|head)\b[\s\S]*?(?:<\/\1\s*>|$)|<!--[\s\S]*?(?:-->|$)|<[^>]*>?/gi;
const MAX_QUOTED = 80;

/**
 * Returns the title of a web page or its first words, or `null` if the response isn't a page. The content type is ignored, because PHP
 * sends everything as `text/html`, including a receiver's `ok`. `answer` must be redacted.
 */
export function quotePage(answer: string | null): string | null {
  if (answer === null || !PAGE.test(answer)) return null;
  const words = (TITLE.exec(answer)?.[1] ?? answer.replace(UNSEEN, ' ')).trim().split(/\s+/).join(' ');
  if (words === '') return 'a page without text';
  return words.length > MAX_QUOTED ? `${words.slice(0, MAX_QUOTED - 1)}…` : words;
}

/** For tests and notifications, where a web page as a response counts as a failure. Returns its error. */
export function refusePage(answer: Uint8Array): string | null {
  return quotePage(redactAnswer(answer)) === null ? null : REFUSED;
}

const REFUSED =
  "web_page: the endpoint returned 2xx with a web page, such as a login page; webhook receivers don't do that";
