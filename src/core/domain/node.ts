/** The base URLs of a node's two APIs (for the whole chain and for irreversible blocks) without trailing slashes. */
export type NodeUrls = {
  /** Starts with `http://`, `https://`, `grpc://` or `grpcs://`. The path may contain a secret of the provider's. */
  url: string;
  /** Equal to `url` if one URL serves both, as with the big providers over HTTP. */
  solidityUrl: string;
};

/** A TRON node in the operator's configuration. */
export type NodeSpec = NodeUrls & {
  /** The gRPC API of a node that is asked over HTTP, because gRPC returns a block's raw bytes. `null` if unknown. */
  grpc: NodeUrls | null;
  /** The URL at which `/jsonrpc` is tried, although it may not exist; `null` to never try it. */
  jsonRpcUrl: string | null;
  /** Its operator's name. Two nodes of the same operator count as one for agreement. */
  operator: string;
  apiKey: string | null;
  /** Name of the header or gRPC metadata that contains the key, in lower case. */
  apiKeyHeader: string;
  /** `null` means no limit. May be a fraction. */
  requestsPerSecond: number | null;
  /** Per UTC day; `null` means no limit. */
  requestsPerDay: number | null;
};

/** The header that TronGrid expects. */
export const API_KEY_HEADER = 'tron-pro-api-key';

/** Returns a node without a key or limits, as in the sandbox. By default, every such node counts as a different operator's. */
export function unlimitedNode(url: string, operator: string = url, urls: Partial<NodeSpec> = {}): NodeSpec {
  return {
    url,
    solidityUrl: url,
    grpc: null,
    jsonRpcUrl: url.startsWith('grpc') ? null : url,
    operator,
    apiKey: null,
    apiKeyHeader: API_KEY_HEADER,
    requestsPerSecond: null,
    requestsPerDay: null,
    ...urls,
  };
}

export function urlsOf({ url, solidityUrl, grpc, jsonRpcUrl }: NodeSpec): string[] {
  const twin = grpc === null ? [] : [grpc.url, grpc.solidityUrl];
  return [url, solidityUrl, ...twin, ...(jsonRpcUrl === null ? [] : [jsonRpcUrl])];
}

/** Whether a node can return a block's raw bytes. */
export function showsBytes({ url, grpc }: NodeSpec): boolean {
  return url.startsWith('grpc') || grpc !== null;
}

/** Returns the scheme, host and port of a node's URL, which contain no secret. */
export function nodeOrigin(url: string): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}
