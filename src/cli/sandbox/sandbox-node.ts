import { type NodeSpec, unlimitedNode } from '../../domain/node.ts';

/** How the sandbox asks its own network: as we advise others to, by gRPC. */
export function sandboxNode({ grpcUrl, grpcSolidityUrl }: { grpcUrl: string; grpcSolidityUrl: string }): NodeSpec {
  return unlimitedNode(grpcUrl, grpcUrl, { solidityUrl: grpcSolidityUrl });
}
