/** Text that is already HTML. Data from outside, such as parsed JSON, never becomes HTML, even if it looks like it. */
class SafeHtml {
  readonly html: string;
  constructor(html: string) {
    this.html = html;
  }
}

/** Only `html`, `rawHtml` and `betweenTags` create it. */
export type Html = SafeHtml;

type Value = Html | string | number | null | readonly Html[];

/** A tagged template that escapes every value: html`<p>${name}</p>`. `Html` values are inserted unchanged; `null` is empty. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  const text = parts.reduce((before, part, index) => before + toText(values[index - 1] ?? null) + part);
  return new SafeHtml(text);
}

/** Marks our own text, such as the SVG of the QR code, as HTML. Never call this with data from outside. */
export function rawHtml(text: string): Html {
  return new SafeHtml(text);
}

/**
 * Escapes text between tags. Quotes have no meaning there, and leaving them unescaped makes the code examples a sixth smaller. Not for
 * attributes.
 */
export function betweenTags(text: string): Html {
  return new SafeHtml(text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? ''));
}

/** Returns the text as a reader sees it on the page. Paragraphs are separated by a space. */
export function plainText({ html: text }: Html): string {
  const bare = text.replaceAll('</p><p', '</p> <p').replaceAll(/<[^>]*>/g, '');
  return bare.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (escaped) => UNESCAPES.get(escaped) ?? escaped);
}

function toText(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return escapeText(String(value));
  if (value instanceof SafeHtml) return value.html;
  return value.map(toText).join('');
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const UNESCAPES = new Map(Object.entries(ESCAPES).map(([character, escaped]) => [escaped, character]));

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
