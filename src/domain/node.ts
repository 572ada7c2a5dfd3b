/** Where the two sides of a node answer: the whole chain, and what is irreversible. Base URLs without trailing slashes. */
export type NodeUrls = {
  /** `http://`, `https://`, `grpc://` or `grpcs://`. A path may be a provider's secret. */
  url: string;
  /** The same as `url` where one place serves both, as the big providers do over HTTP. */
  solidityUrl: string;
};

/** A TRON node as the operator of Quittance configures it. */
export type NodeSpec = NodeUrls & {
  /** The gRPC API of a node that is asked over HTTP: it shows the very bytes of a block. `null`: none is known. */
  grpc: NodeUrls | null;
  /** Where `/jsonrpc` is tried, which may not be there; `null`: nowhere. */
  jsonRpcUrl: string | null;
  /** Its operator's name; two nodes of one operator count as one for agreement. */
  operator: string;
  apiKey: string | null;
  /** The header, or gRPC metadata, that carries the key; in lower case. */
  apiKeyHeader: string;
  /** `null`: no limit. May be a fraction. */
  requestsPerSecond: number | null;
  /** Per UTC day; `null`: no limit. */
  requestsPerDay: number | null;
};

/** As TronGrid takes keys. */
export const API_KEY_HEADER = 'tron-pro-api-key';

/** A node without key and limits, as in the sandbox. Each is an operator of its own unless told otherwise. */
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

/** All places at which a node is asked. */
export function urlsOf({ url, solidityUrl, grpc, jsonRpcUrl }: NodeSpec): string[] {
  const twin = grpc === null ? [] : [grpc.url, grpc.solidityUrl];
  return [url, solidityUrl, ...twin, ...(jsonRpcUrl === null ? [] : [jsonRpcUrl])];
}

/** Whether a node can be asked for the very bytes of a block. */
export function showsBytes({ url, grpc }: NodeSpec): boolean {
  return url.startsWith('grpc') || grpc !== null;
}

/** Scheme, host and port of a node's URL, which hold no secret. */
export function nodeOrigin(url: string): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}
