import {
  accountInfoJson,
  accountResourceJson,
  chainParametersJson,
  contractJson,
  witnessesJson,
} from './account-json.ts';
import type { Block } from './block.ts';
import { blockJson, type InfoJson, infoJson, transactionJson } from './block-json.ts';
import {
  broadcastHexJson,
  broadcastJson,
  constantCallJson,
  estimateEnergyJson,
  triggerJson,
} from './contract-endpoints.ts';
import type { Endpoint, EndpointContext } from './endpoint.ts';
import type { LedgerView } from './ledger.ts';
import { accountParameter, booleanParameter, integerParameter, ParameterError, textParameter } from './parameters.ts';

/** `getblockbylimitnext` answers nothing at all when asked for more. */
const MAX_RANGE_BLOCKS = 100;

const SHARED: Readonly<Record<string, Endpoint>> = {
  getnowblock: (context) => wholeBlock(context, context.view.headNumber),
  getblock: getBlock,
  getblockbynum: (context) => wholeBlock(context, integerParameter(context.parameters, 'num')),
  getblockbyid: (context) => {
    const block = blockById(context.view, textParameter(context.parameters, 'value'));
    return block === null ? {} : blockJson(block, { detail: true, visible: context.visible });
  },
  getblockbylimitnext: getBlockByLimitNext,
  gettransactionbyid: ({ view, parameters, visible }) => {
    const found = view.transaction(textParameter(parameters, 'value'));
    return found === null ? {} : transactionJson(found.transaction, visible);
  },
  gettransactioninfobyid: ({ view, parameters, visible }) => {
    const found = view.transaction(textParameter(parameters, 'value'));
    return found === null ? {} : infoJson(found.block, found.transaction, visible);
  },
  gettransactioninfobyblocknum: ({ view, parameters, visible }): InfoJson[] => {
    const block = view.block(integerParameter(parameters, 'num'));
    return block === null ? [] : block.transactions.map((transaction) => infoJson(block, transaction, visible));
  },
  listwitnesses: ({ view, witnesses, visible }) => witnessesJson(view, { visible, witnesses }),
  getaccount: ({ view, witnesses, parameters, visible }) =>
    accountInfoJson(view.state(), accountParameter(parameters, 'address'), { visible, witnesses }),
  triggerconstantcontract: constantCallJson,
  estimateenergy: estimateEnergyJson,
};

const FULL_ONLY: Readonly<Record<string, Endpoint>> = {
  getaccountresource: ({ view, parameters }) =>
    accountResourceJson(view.state(), accountParameter(parameters, 'address')),
  getchainparameters: chainParametersJson,
  getcontract: ({ parameters, visible }) => contractJson(accountParameter(parameters, 'value'), visible),
  triggersmartcontract: triggerJson,
  broadcasttransaction: broadcastJson,
  broadcasthex: broadcastHexJson,
  getnodeinfo: nodeInfoJson,
};

/** Every path a devnet node answers, with the chain it answers from. */
export const ENDPOINTS: ReadonlyMap<string, { readonly kind: 'full' | 'solid'; readonly run: Endpoint }> = new Map([
  ...under('/wallet', 'full', { ...SHARED, ...FULL_ONLY }),
  ...under('/walletsolidity', 'solid', SHARED),
]);

function under(prefix: string, kind: 'full' | 'solid', endpoints: Readonly<Record<string, Endpoint>>) {
  return Object.entries(endpoints).map(([name, run]) => [`${prefix}/${name}`, { kind, run }] as const);
}

/** `id_or_num` is a height or a block id; without it, the head is meant. Without `detail`, only the header is answered. */
function getBlock({ view, parameters, visible }: EndpointContext): unknown {
  const wanted = textParameter(parameters, 'id_or_num');
  const detail = booleanParameter(parameters, 'detail');
  if (wanted !== '' && !/^(?:\d{1,15}|[0-9a-f]{64})$/i.test(wanted)) {
    throw new ParameterError(`id_or_num must be a height or a block id, not ${JSON.stringify(wanted.slice(0, 80))}`);
  }
  const block =
    wanted.length === 64 ? blockById(view, wanted) : view.block(wanted === '' ? view.headNumber : Number(wanted));
  return block === null ? {} : blockJson(block, { detail, visible });
}

function getBlockByLimitNext({ view, parameters, visible }: EndpointContext): unknown {
  const [start, end] = [integerParameter(parameters, 'startNum'), integerParameter(parameters, 'endNum')];
  if (start < 0 || end <= start || end - start > MAX_RANGE_BLOCKS) return {};
  const blocks: unknown[] = [];
  for (let number = start; number < end; number += 1) {
    const block = view.block(number);
    if (block !== null) blocks.push(blockJson(block, { detail: true, visible }));
  }
  return blocks.length === 0 ? {} : { block: blocks };
}

function wholeBlock({ view, visible }: EndpointContext, number: number): unknown {
  const block = view.block(number);
  return block === null ? {} : blockJson(block, { detail: true, visible });
}

/** A block of the present branch; its id begins with its height. */
function blockById(view: LedgerView, id: string): Block | null {
  const block = /^[0-9a-f]{64}$/i.test(id) ? view.block(Number.parseInt(id.slice(0, 16), 16)) : null;
  return block?.id === id.toLowerCase() ? block : null;
}

function nodeInfoJson({ ledger, view }: EndpointContext): unknown {
  const describe = (number: number) => `Num:${number},ID:${ledger.view('full').block(number)?.id ?? ''}`;
  return {
    beginSyncNum: 0,
    block: describe(view.headNumber),
    solidityBlock: describe(Math.min(view.headNumber, ledger.solidNumber())),
    currentConnectCount: 0,
    activeConnectCount: 0,
    passiveConnectCount: 0,
    totalFlow: 0,
    peerList: [],
    configNodeInfo: { codeVersion: '4.8.0', p2pVersion: 'devnet', supportConstant: true },
  };
}
