/** A request that a node answers by JSON-RPC with this error. */
export class JsonRpcError extends Error {
  override name = 'JsonRpcError';
  readonly #code: number;
  readonly #data: string | undefined;

  /** `data` is what java-tron writes beside its own errors, and absent in those of its JSON-RPC library (jsonrpc4j). */
  constructor(code: number, message: string, data?: string) {
    super(message);
    this.#code = code;
    this.#data = data;
  }

  /** The member `error` of the answer. */
  get shown() {
    return { code: this.#code, message: this.message, ...(this.#data === undefined ? {} : { data: this.#data }) };
  }
}

/** `JsonRpcInvalidParamsException`. */
export function invalidParams(message: string): JsonRpcError {
  return new JsonRpcError(-32602, message, '{}');
}

/** A body, or a parameter of a method, that is not of the form that its reader expects. */
export function unreadable(): JsonRpcError {
  return new JsonRpcError(-32700, 'JSON parse error');
}
