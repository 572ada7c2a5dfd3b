/** Text that is HTML already. What came from elsewhere is none, also where it looks like one, such as parsed JSON. */
class SafeHtml {
  readonly html: string;
  constructor(html: string) {
    this.html = html;
  }
}

/** Only `html`, `rawHtml` and `betweenTags` make it. */
export type Html = SafeHtml;

type Value = Html | string | number | null | readonly Html[];

/** A tagged template that escapes every value: html`<p>${name}</p>`. Values that are `Html` stand as they are; `null` is nothing. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  const text = parts.reduce((before, part, index) => before + toText(values[index - 1] ?? null) + part);
  return new SafeHtml(text);
}

/** Marks text of our own, such as the QR code's SVG, as HTML. Never call it with anything from outside. */
export function rawHtml(text: string): Html {
  return new SafeHtml(text);
}

/** A text between tags, where quotes mean nothing: a program is a sixth smaller with them as they are. Not for an attribute. */
export function betweenTags(text: string): Html {
  return new SafeHtml(text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? ''));
}

/** The text that a reader of the page sees, for places without a page. A space separates paragraphs. */
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
