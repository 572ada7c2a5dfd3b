/** A value in a signed statement. Fractions, lists and nulls aren't allowed, because their form is ambiguous. */
export type CanonicalValue = string | number | { readonly [name: string]: CanonicalValue };

/**
 * Serialises a value according to the JSON Canonicalization Scheme (RFC 8785): members are sorted by their UTF-16 units, without white
 * space. Equal values always give equal bytes. Throws a RangeError for a number that isn't a safe integer, and for an unpaired surrogate.
 */
export function canonicalJson(value: CanonicalValue): string {
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new RangeError('a text contains an unpaired surrogate');
    return JSON.stringify(value);
  }
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a safe integer`);
    return JSON.stringify(value);
  }
  const members = Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, member]) => `${canonicalJson(name)}:${canonicalJson(member)}`);
  return `{${members.join(',')}}`;
}
