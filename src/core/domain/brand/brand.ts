import { isLoopbackLink, parseUrl } from '../url.ts';

/** A support contact as pages show it. `href` is `null` if the contact is only text, such as a Telegram account name. */
type SupportLink = { text: string; href: string | null };

/** Turns `help@shop.example` into a `mailto:` link, and an https URL into a link. Anything else stays text. */
export function supportLink(contact: string): SupportLink {
  if (MAIL_ADDRESS.test(contact)) return { text: contact, href: `mailto:${contact}` };
  const read = readLink(contact);
  const isLink = read.kind === 'ok' && read.url.startsWith('https:');
  return { text: contact, href: isLink ? read.url : null };
}

/** The database schema's limit, in characters. */
const MAX_CONTACT = 200;

/** Returns why a support contact is refused, or `null`. */
export function contactProblem(contact: string): string | null {
  return lineProblem(contact, { most: MAX_CONTACT, give: 'an e-mail address, a link or a name' })?.reason ?? null;
}

/** Why a line of text is refused. These codes also appear in the API's field errors. */
type LineProblem = { code: 'WRONG_LENGTH' | 'WRONG_CHARACTER'; reason: string };

/**
 * Returns why a line of text for payers is refused, or `null`. `most` is the limit in characters; `give` describes what the line should
 * contain.
 */
export function lineProblem(line: string, { most, give }: { most: number; give: string }): LineProblem | null {
  const wrongLength = (reason: string): LineProblem => ({ code: 'WRONG_LENGTH', reason });
  const wrongCharacter = (reason: string): LineProblem => ({ code: 'WRONG_CHARACTER', reason });
  const length = [...line].length;
  if (length === 0) return wrongLength(`is empty: use ${give} (1 to ${most} characters)`);
  if (length > most) return wrongLength(`has ${length} characters: use at most ${most}`);
  if (HIDDEN.test(line)) {
    return wrongCharacter(
      'contains a line break, a control character or a character that reverses the text direction: write plain text on one line',
    );
  }
  if (!/[\p{L}\p{N}\p{Emoji_Presentation}]/u.test(line))
    return wrongCharacter(`contains no readable text: use ${give}`);
  if (/\p{M}{5}/u.test(line))
    return wrongCharacter('contains more than four combining marks on one letter: write plain text');
  return null;
}

type ReadLink =
  /** The URL has the form that browsers write. */
  { kind: 'ok'; url: string } | { kind: 'refused'; reason: string };

/** The database schema's limit, in characters. */
const MAX_URL = 2048;

/**
 * Reads an https URL without credentials, such as `https://shop.example/thanks`; http is allowed only for this machine. The reason never
 * quotes the URL.
 */
export function readLink(text: string): ReadLink {
  const refuse = (reason: string) => ({ kind: 'refused', reason }) as const;
  // Browsers silently drop some of these characters and read a backslash as a slash, but the stored URL must be exactly what the user
  // wrote.
  if (/[\s\p{C}\\]/u.test(text)) {
    return refuse('contains a space, a backslash or a control character: percent-encode it, or remove it');
  }
  const url = /^https?:\/\/[^/]/i.test(text) ? parseUrl(text) : null;
  if (url === null) return refuse('is not an https:// URL: use a URL such as https://shop.example.com/thanks');
  if (url.username !== '' || url.password !== '') {
    return refuse('has a user name or password before the "@", and every payer would see it: remove it');
  }
  if (url.href.length > MAX_URL) return refuse(`has ${url.href.length} characters: use at most ${MAX_URL}`);
  if (url.protocol === 'http:' && !isLoopbackLink(url.hostname)) {
    return refuse('starts with http://, so others can read and change the traffic: use https://');
  }
  return { kind: 'ok', url: url.href };
}

/** The placeholder for the invoice id in a return link. */
const PLACE = '{invoiceId}';
/** This stand-in for an id has the length of a real one, and has no characters that need encoding. */
const STAND_IN = `inv_${'0'.repeat(26)}`;

/**
 * Reads a return link. This function works like `readLink`, but the path, query or fragment may contain `{invoiceId}` any number of times.
 */
export function readReturnUrl(text: string): ReadLink {
  const refuse = (reason: string) => ({ kind: 'refused', reason }) as const;
  const rest = text.replaceAll(PLACE, '');
  if (rest.includes('{externalId}')) {
    return refuse(
      'contains {externalId}, which is private to your shop but which every payer would see: use {invoiceId} instead',
    );
  }
  if (/[{}]/.test(rest)) return refuse('contains a brace: the only placeholder is {invoiceId}');
  const read = readLink(text.replaceAll(PLACE, STAND_IN));
  if (read.kind === 'refused' || !text.includes(PLACE)) return read;
  if (new URL(read.url).host.includes(STAND_IN)) {
    return refuse(
      'contains {invoiceId} in the host name: put it in the path, as in https://shop.example.com/orders/{invoiceId}',
    );
  }
  return { kind: 'ok', url: read.url.replaceAll(STAND_IN, PLACE) };
}

/** Returns an invoice's return link. `id` has the form `inv_…`. */
export function fillReturnUrl(url: string, id: string): string {
  return url.replaceAll(PLACE, id);
}

/** Whether a project's payers may see their invoices' ids, which is the case if the return link contains them. */
export function showsInvoiceId(url: string | null): boolean {
  return url?.includes(PLACE) ?? false;
}

/** Allows only characters that have no special meaning in a `mailto:` link (RFC 6068). */
const MAIL_ADDRESS =
  /^[a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/i;

/**
 * The pattern also includes line separators, and characters that embed, override or isolate a text direction. Joiners are allowed, because
 * Persian needs them.
 */
const HIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;

/** The database schema's limits. */
const MAX_ORIGINS = 5;
const MAX_CHARS = 1000;
const EXAMPLE = 'https://shop.example.com';

/** The origins as a header contains them, separated by spaces. */
type ReadOrigins = { kind: 'ok'; origins: string } | Extract<ReadLink, { kind: 'refused' }>;

/**
 * Reads the sites that may embed the payer's page: 1 to 5 origins such as `https://shop.example.com`, separated by spaces or commas. http
 * is allowed only for this machine. The reason never quotes them.
 */
export function readEmbedOrigins(text: string): ReadOrigins {
  const refuse = (reason: string) => ({ kind: 'refused', reason }) as const;
  const given = text.split(/[\s,]+/).filter((part) => part !== '');
  if (given.length === 0 || given.length > MAX_ORIGINS)
    return refuse(`has ${given.length} sites: use 1 to ${MAX_ORIGINS}, such as ${EXAMPLE}`);
  const origins = given.map(readOrigin);
  if (origins.includes(null))
    return refuse(
      `accepts only the scheme, host and port of a site, without "*", a user name or an IPv6 address: use a value such as ${EXAMPLE}`,
    );
  const joined = [...new Set(origins)].join(' ');
  if (joined.length > MAX_CHARS) return refuse(`has ${joined.length} characters: use at most ${MAX_CHARS}`);
  const open = origins.find((origin) => origin?.startsWith('http:') && !isLoopbackLink(new URL(origin).hostname));
  if (open !== undefined) return refuse('has a site with http://, so others can change its traffic: use https://');
  return { kind: 'ok', origins: joined };
}

/** Allows only characters that have no special meaning in a header. */
const ORIGIN = /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?$/;

function readOrigin(text: string): string | null {
  const url = /\\/.test(text) ? null : parseUrl(text);
  return url?.href === `${url?.origin}/` && ORIGIN.test(url.origin) ? url.origin : null;
}

/** Returns a shop's origins, taken from its project's settings. */
export function shopOrigins(returnUrl: string | null, embedOrigins: string | null): string[] {
  // Someone may have written any text directly to the database, so invalid text must not break anything.
  const own = returnUrl === null ? null : parseUrl(returnUrl);
  return [...new Set([...(own === null ? [] : [own.origin]), ...(embedOrigins?.split(' ') ?? [])])];
}
