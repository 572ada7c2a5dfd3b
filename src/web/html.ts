/** Text that is HTML already. Only `html` and `rawHtml` make it. */
export type Html = { readonly html: string };

type Value = Html | string | number | null | readonly Html[];

/** A tagged template that escapes every value: html`<p>${name}</p>`. Values that are `Html` stand as they are; `null` is nothing. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  const text = parts.reduce((before, part, index) => before + toText(values[index - 1] ?? null) + part);
  return { html: text };
}

/** Marks text of our own, such as the QR code's SVG, as HTML. Never call it with anything from outside. */
export function rawHtml(text: string): Html {
  return { html: text };
}

/** A text between tags, where quotes mean nothing: a program is a sixth smaller with them as they are. Not for an attribute. */
export function betweenTags(text: string): Html {
  return { html: text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? '') };
}

/** The text that a reader of the page sees, for places without a page. A space separates paragraphs. */
export function plainText({ html: text }: Html): string {
  const bare = text.replaceAll('</p><p', '</p> <p').replaceAll(/<[^>]*>/g, '');
  return bare.replaceAll(/&(?:amp|lt|gt|quot|#39);/g, (escaped) => UNESCAPES.get(escaped) ?? escaped);
}

function toText(value: Value): string {
  if (value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return escapeText(String(value));
  if ('html' in value) return value.html;
  return value.map(({ html }) => html).join('');
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const UNESCAPES = new Map(Object.entries(ESCAPES).map(([character, escaped]) => [escaped, character]));

function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
