import { OTHER_EVENT } from '../../src/faces/api/event-schemas.ts';

/**
 * Closes an OpenAPI document to this release: the known values are the only ones, and no event comes from a later release. The SDK's types
 * and the tests of answers use it.
 */
export function closeKnown<Document>(document: Document): Document {
  const close = (part: unknown): unknown => {
    if (Array.isArray(part))
      return part.filter((each) => each?.$ref !== `#/components/schemas/${OTHER_EVENT}`).map(close);
    if (typeof part !== 'object' || part === null) return part;
    const { 'x-extensible-enum': known, additionalProperties, ...rest } = part as Record<string, unknown>;
    const entries = Object.entries(rest).filter(([name]) => name !== OTHER_EVENT);
    const closed = Object.fromEntries(entries.map(([key, value]) => [key, close(value)]));
    const isOpen = additionalProperties === undefined || additionalProperties === true;
    const more = isOpen ? {} : { additionalProperties: close(additionalProperties) };
    return { ...closed, ...more, ...(known === undefined ? {} : { enum: known }) };
  };
  return close(document) as Document;
}

/** Also replaces every local `$ref` by the part that it refers to. Our document has no cycles. */
export function expandReferences<Document>(open: Document): Document {
  const document = closeKnown(open);
  const expand = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(expand);
    if (typeof part !== 'object' || part === null) return part;
    if ('$ref' in part) return expand(find(String(part.$ref)));
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, expand(value)]));
  };
  const find = (reference: string): unknown =>
    reference
      .slice('#/'.length)
      .split('/')
      .reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], document);
  return expand(document) as Document;
}
