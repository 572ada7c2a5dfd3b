/**
 * What a shop may say of an invoice beside what it must. `returnUrl`: `https://shop.example/orders/{invoiceId}`; `description`: what the payer
 * reads; `metadata`: the shop's own words, shown to nobody else.
 */
export type InvoiceOptions = {
  returnUrl?: string;
  expiresInSeconds?: number;
  description?: string;
  metadata?: Readonly<Record<string, string>>;
};

export const OPTION_NAMES = ['returnUrl', 'expiresInSeconds', 'description', 'metadata'] as const;

/** The one text of what was said, whatever its order was: it is kept, sealed and compared. `null` where nothing was said. */
export function formatOptions(options: InvoiceOptions): string | null {
  const { metadata = {}, ...rest } = options;
  const pairs = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const said = { ...rest, ...(pairs.length > 0 && { metadata: Object.fromEntries(pairs) }) };
  const entries = OPTION_NAMES.flatMap((name) => (said[name] === undefined ? [] : [[name, said[name]] as const]));
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

/** Of such a text. What is of another type, somebody wrote to the database: it is left out, for a page must show nothing else than text. */
export function readOptions(text: string | null): InvoiceOptions {
  if (text === null) return {};
  const { returnUrl, expiresInSeconds, description, metadata } = JSON.parse(text) as Record<string, unknown>;
  return {
    ...(typeof returnUrl === 'string' && { returnUrl }),
    ...(typeof expiresInSeconds === 'number' && { expiresInSeconds }),
    ...(typeof description === 'string' && { description }),
    ...(isTexts(metadata) && { metadata }),
  };
}

function isTexts(value: unknown): value is Record<string, string> {
  return (
    typeof value === 'object' && value !== null && Object.values(value).every((member) => typeof member === 'string')
  );
}

/** The names of those that differ between two such texts. */
export function differingOptions(one: string | null, other: string | null): string[] {
  if (one === other) return [];
  const [ours, theirs] = [readOptions(one), readOptions(other)];
  return OPTION_NAMES.filter(
    (name) => formatOptions({ [name]: ours[name] }) !== formatOptions({ [name]: theirs[name] }),
  );
}
