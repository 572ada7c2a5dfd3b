/** The ids of the blocks at height 0, which identify a node's network. */
export const GENESIS_BLOCK_IDS = {
  mainnet: '00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc',
  nile: '0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc',
} as const;
