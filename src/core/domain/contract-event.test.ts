import { expect, test } from 'vitest';
import { CONTRACT_EVENT_TOPICS } from './contract-event.ts';

test('the topics are those that explorers show for the events of USDT on TRON', () => {
  expect(Object.fromEntries(CONTRACT_EVENT_TOPICS)).toEqual({
    '6985a02210a168e66602d3235cb6db0e70f92b3ba4d376a33c0f3d9434bff625': 'Pause',
    '7805862f689e2f13df9f062ff482ad3ad112aca9e0847911ed832e158c525b33': 'Unpause',
    '42e160154868087d6bfdc0ca23d96a1c1cfa32f1b72ba9ba27b69b98a0d819dc': 'AddedBlackList',
    d7e9ec6e6ecd65492dce6bf513cd6867560d49544421d0783ddf06e76c24470c: 'RemovedBlackList',
    '61e6e66b0d6339b2980aecc6ccc0039736791f0ccde9ed512e789a7fbdd698c6': 'DestroyedBlackFunds',
    cc358699805e9a8b7f77b522628c7cb9abd07d9efb86b6fb616af1609036a99e: 'Deprecate',
    b044a1e409eac5c48e5af22d4af52670dd1a99059537a78b31b48c6500a6354e: 'Params',
    cb8241adb0c3fdb35b70c24ce35c5eb0c17af7431c99f827d44a445ca624176a: 'Issue',
    '702d5967f45f6513a38ffc42d6ba9bf230bd40e8f53b16363c7eb4fd2deb9a44': 'Redeem',
  });
});
