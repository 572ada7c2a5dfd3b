/** An OpenAPI document with every `$ref` to a part of its own replaced by that part. Ours has no circles. */
export function expandReferences<Document>(document: Document): Document {
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
