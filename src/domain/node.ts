/** A TRON node as the operator of Quittance configures it. */
export type NodeSpec = {
  /** Base URL without a trailing slash and without a fragment. Its path may be a provider's secret. */
  url: string;
  /** Who runs it; two nodes of one operator count as one for agreement. */
  operator: string;
  /** Sent as `TRON-PRO-API-KEY`. */
  apiKey: string | null;
  /** `null`: no limit. May be a fraction. */
  requestsPerSecond: number | null;
  /** Per UTC day; `null`: no limit. */
  requestsPerDay: number | null;
};

/** A node without key and limits, as in the sandbox. Each is an operator of its own unless told otherwise. */
export function unlimitedNode(url: string, operator: string = url): NodeSpec {
  return { url, operator, apiKey: null, requestsPerSecond: null, requestsPerDay: null };
}
