import { accountFromHex41 } from '../../tron/address.ts';
import { accountParameter, exactBoolean, exactInteger, exactText, idParameter } from '../chain/parameters.ts';
import {
  accountInfoJson,
  accountResourceJson,
  chainParametersJson,
  contractJson,
  witnessesJson,
} from './account-json.ts';
import { blockJson, type InfoJson, infoJson, transactionJson } from './block-json.ts';
import {
  broadcastHexJson,
  broadcastJson,
  constantCallJson,
  estimateEnergyJson,
  triggerJson,
} from './contract-endpoints.ts';
import type { Endpoint, EndpointContext } from './endpoint.ts';
import { blockById, findBlock, rangeOf } from './find-block.ts';
import { JSON_RPC_PATH, jsonRpcJson } from './json-rpc.ts';

const SHARED: Readonly<Record<string, Endpoint>> = {
  getnowblock: (context) => wholeBlock(context, context.view.headNumber),
  getblock: getBlock,
  getblockbynum: (context) => wholeBlock(context, exactInteger(context.parameters, 'num')),
  getblockbyid: (context) => {
    const block = blockById(context.view, idParameter(context.parameters, 'value'));
    return block === null ? {} : blockJson(block, { detail: true, visible: context.visible });
  },
  getblockbylimitnext: getBlockByLimitNext,
  gettransactionbyid: ({ view, parameters, visible }) => {
    const found = view.transaction(idParameter(parameters, 'value'));
    return found === null ? {} : transactionJson(found.transaction, visible);
  },
  gettransactioninfobyid: ({ view, parameters, visible }) => {
    const found = view.transaction(idParameter(parameters, 'value'));
    return found === null ? {} : infoJson(found.block, found.transaction, visible);
  },
  gettransactioninfobyblocknum: ({ view, parameters, visible }): InfoJson[] | object => {
    const number = exactInteger(parameters, 'num');
    if (number <= 0) return {};
    const block = view.block(number);
    return block === null ? [] : block.transactions.map((transaction) => infoJson(block, transaction, visible));
  },
  listwitnesses: ({ view, witnesses, visible }) => witnessesJson(view, { visible, witnesses }),
  getaccount: getAccount,
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
  [JSON_RPC_PATH, { kind: 'full', run: jsonRpcJson }],
]);

function under(prefix: string, kind: 'full' | 'solid', endpoints: Readonly<Record<string, Endpoint>>) {
  return Object.entries(endpoints).map(([name, run]) => [`${prefix}/${name}`, { kind, run }] as const);
}

/** Without `detail`, only the header is answered. */
function getBlock({ view, parameters, visible }: EndpointContext): unknown {
  const detail = exactBoolean(parameters, 'detail');
  const block = findBlock(view, exactText(parameters, 'id_or_num'));
  return block === null ? {} : blockJson(block, { detail, visible });
}

function getBlockByLimitNext({ view, parameters, visible }: EndpointContext): unknown {
  const blocks = rangeOf(view, exactInteger(parameters, 'startNum'), exactInteger(parameters, 'endNum'));
  return blocks === null ? {} : { block: blocks.map((block) => blockJson(block, { detail: true, visible })) };
}

function wholeBlock({ view, visible }: EndpointContext, number: number): unknown {
  const block = view.block(number);
  return block === null ? {} : blockJson(block, { detail: true, visible });
}

/** Hex that is no address names an account that does not exist. */
function getAccount({ view, witnesses, parameters, visible }: EndpointContext): unknown {
  const account = visible
    ? accountParameter(parameters, 'address')
    : accountFromHex41(idParameter(parameters, 'address'));
  return account === null ? {} : accountInfoJson(view.state(), account, { visible, witnesses });
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
