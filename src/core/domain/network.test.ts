import { expect, test } from 'vitest';
import { isNetwork, keyMode, NETWORKS, WIRE_ASSET, WIRE_NETWORK } from './network.ts';
import { nodeOrigin, unlimitedNode } from './node.ts';

test('live keys are those of the main network alone', () => {
  expect(NETWORKS.map((network) => [network, keyMode(network)])).toEqual([
    ['mainnet', 'live'],
    ['nile', 'test'],
    ['devnet', 'test'],
  ]);
});

test('a network is one of those, as it is written there', () => {
  expect(['mainnet', 'nile', 'devnet', 'Mainnet', 'TRON', '', 'toString'].map(isNetwork)).toEqual([
    ...[true, true, true],
    ...[false, false, false, false],
  ]);
});

test('on the wire there is one network and one asset', () => {
  expect([WIRE_NETWORK, WIRE_ASSET]).toEqual(['TRON', 'USDT']);
});

test('the origin of a node has scheme, host and port, whatever it speaks, and no path', () => {
  expect(nodeOrigin('https://n1.example/t0ken')).toBe('https://n1.example');
  expect(nodeOrigin('grpc://n1.example:50051')).toBe('grpc://n1.example:50051');
});

test('a node is an operator of its own unless told otherwise', () => {
  const sides = { url: 'http://n1', solidityUrl: 'http://n1', grpc: null, jsonRpcUrl: 'http://n1' };
  const node = {
    ...sides,
    apiKey: null,
    apiKeyHeader: 'tron-pro-api-key',
    requestsPerSecond: null,
    requestsPerDay: null,
  };
  expect(unlimitedNode('http://n1')).toEqual({ ...node, operator: 'http://n1' });
  expect(unlimitedNode('http://n1', 'ann')).toEqual({ ...node, operator: 'ann' });
});
