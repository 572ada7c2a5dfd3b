/**
 * The optional fields of an invoice. `returnUrl` is for example `https://shop.example/orders/{invoiceId}`; `description` is shown to the
 * payer; `metadata` holds private values of the shop.
 */
export type InvoiceOptions = {
  returnUrl?: string;
  expiresInSeconds?: number;
  description?: string;
  metadata?: Readonly<Record<string, string>>;
};

export const OPTION_NAMES = ['returnUrl', 'expiresInSeconds', 'description', 'metadata'] as const;

/**
 * Returns the options as canonical text that doesn't depend on their order, or `null` if there are none. This text is stored, sealed and
 * compared.
 */
export function formatOptions(options: InvoiceOptions): string | null {
  const { metadata = {}, ...rest } = options;
  const pairs = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const said = { ...rest, ...(pairs.length > 0 && { metadata: Object.fromEntries(pairs) }) };
  const entries = OPTION_NAMES.flatMap((name) => (said[name] === undefined ? [] : [[name, said[name]] as const]));
  return entries.length === 0 ? null : JSON.stringify(Object.fromEntries(entries));
}

/**
 * Parses such a text. If a value has the wrong type, someone wrote it directly to the database. It's dropped, because pages must show only
 * text.
 */
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

/** Returns the names of the options that differ between two such texts. */
export function differingOptions(one: string | null, other: string | null): string[] {
  if (one === other) return [];
  const [ours, theirs] = [readOptions(one), readOptions(other)];
  return OPTION_NAMES.filter(
    (name) => formatOptions({ [name]: ours[name] }) !== formatOptions({ [name]: theirs[name] }),
  );
}
