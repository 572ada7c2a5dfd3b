import type { Parameters } from '../chain/parameters.ts';
import type { EndpointContext } from './endpoint.ts';
import { getLogs } from './get-logs.ts';
import { JsonRpcError, unreadable } from './json-rpc-error.ts';

/** java-tron serves it at a port of its own (8545, off by default), and big providers beside `/wallet`, as here. */
export const JSON_RPC_PATH = '/jsonrpc';

/** The answer to a body that is no JSON. The library writes an id that it has not read as this text. */
export function unreadableJson(): object {
  return { jsonrpc: '2.0', id: 'null', error: unreadable().shown };
}

/**
 * A call by JSON-RPC, or a list of them. Only `eth_getLogs` is known. Example: `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[…]}`
 * → `{"jsonrpc":"2.0","id":1,"result":[…]}`.
 */
export function jsonRpcJson(context: EndpointContext): unknown {
  const { parameters } = context;
  if (!Array.isArray(parameters)) return answerCall(context, parameters);
  return parameters.map((each: unknown) => answerCall(context, each));
}

function answerCall(context: EndpointContext, call: unknown): object {
  if (typeof call !== 'object' || call === null) return failed('null', new JsonRpcError(-32600, 'invalid request'));
  const { id = null, method, params } = call as Parameters;
  try {
    if (method !== 'eth_getLogs') throw new JsonRpcError(-32601, 'method not found');
    if (!Array.isArray(params) || params.length !== 1) throw new JsonRpcError(-32602, 'method parameters invalid');
    return { jsonrpc: '2.0', id, result: getLogs(context, params[0]) };
  } catch (error) {
    if (error instanceof JsonRpcError) return failed(id, error);
    throw error;
  }
}

function failed(id: unknown, error: JsonRpcError): object {
  return { jsonrpc: '2.0', id, error: error.shown };
}
