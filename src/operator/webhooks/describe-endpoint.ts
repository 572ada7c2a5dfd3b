type Described = { url: string; description?: string; eventTypes?: readonly string[] | null };

/** An endpoint for the record. Path and query of its URL may hold a token. */
export function describeEndpoint({ url, description = '', eventTypes = null }: Described) {
  return { origin: URL.canParse(url) ? new URL(url).origin : null, description, eventTypes };
}
