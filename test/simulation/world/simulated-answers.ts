import { ParameterError } from '@quittance/devnet/chain/parameters';
import type { Fault } from '@quittance/devnet/faults/faults';
import { type Answering, answerRequest } from '@quittance/devnet/node/node-answers';
import { answerCall, floodOf, type GrpcService } from '@quittance/devnet/node/node-server';
import { jsonPieces, repeat } from '@quittance/devnet/wire/json-text';
import type { GrpcCall, Question } from '../../../src/core/chain/nodes/node.ts';

type Asked = Question<unknown>;

/** Returns a node's answer over HTTP as text. */
export function jsonAnswer(node: Answering, faults: readonly Fault[], { path, body }: Asked['http']): string {
  const bomb = bombOf(faults);
  if (bomb !== undefined) return ['[', ...repeat('{},', (bomb.bytes ?? 0) / 3), '{}]'].join('');
  try {
    return [...jsonPieces(answerRequest(node, path, body as never))].join('');
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    return JSON.stringify({ Error: error.nodeText });
  }
}

/** Returns a node's answer over gRPC. Throws a GrpcError if the call ends with another status. */
export function messageAnswer(
  node: Answering,
  faults: readonly Fault[],
  { path, request }: GrpcCall<unknown>,
): Uint8Array {
  const bomb = bombOf(faults);
  if (bomb !== undefined) return Buffer.concat([...floodOf(bomb).pieces()]);
  const [, service, name = ''] = /^\/protocol\.(\w+)\/(\w+)$/.exec(path) ?? [];
  return answerCall(node, service as GrpcService, name, request);
}

function bombOf(faults: readonly Fault[]): Fault | undefined {
  return faults.find(({ kind }) => kind === 'bracket-bomb');
}
