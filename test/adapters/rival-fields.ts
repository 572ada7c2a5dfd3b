import type { FORMS } from '../../src/faces/adapters/fields.ts';

/**
 * The parameter names that each system publishes for its orders, and those that plugins send: one list for each table or plugin, with its
 * source. A new parameter of a rival needs a decision in `FORMS`.
 */
export const RIVAL_FIELDS: readonly { source: string; form: keyof typeof FORMS; names: string }[] = [
  {
    source: 'github.com/assimon/epusdt c0787d19, wiki/API.md: create-transaction',
    ...{ form: 'epusdt', names: 'order_id amount notify_url redirect_url signature' },
  },
  {
    source: 'github.com/v03413/BEpusdt fdbecadf, docs/api/api.md: 1. create-transaction',
    form: 'bepusdtTransaction',
    names: 'order_id notify_url redirect_url signature amount trade_type fiat address name timeout rate',
  },
  {
    source: 'the same table, for shops whose adapter is one for epusdt',
    form: 'epusdt',
    names: 'order_id notify_url redirect_url signature amount trade_type fiat address name timeout rate',
  },
  {
    source: 'github.com/v03413/BEpusdt fdbecadf, docs/api/api.md: 2. cancel-transaction',
    ...{ form: 'bepusdtCancel', names: 'trade_id signature' },
  },
  {
    source: 'github.com/v03413/BEpusdt fdbecadf, docs/api/api.md: 3. create-order',
    form: 'bepusdtOrder',
    names: 'order_id notify_url redirect_url signature amount currencies fiat name timeout reselect',
  },
  {
    source: 'github.com/v03413/BEpusdt fdbecadf, app/handler/epay/epay.go: submit.php',
    form: 'epay',
    names: 'pid type notify_url return_url out_trade_no name money sign fiat rate timeout address',
  },
  {
    source: 'github.com/GMWalletApp/epusdt 7bd21d1d, wiki/API.md: gmpay create-transaction',
    form: 'gmpay',
    names: 'pid order_id currency token network amount notify_url redirect_url name payment_type signature',
  },
  {
    source: 'github.com/GMWalletApp/epusdt 7bd21d1d, wiki/API.md: EPay submit.php',
    form: 'epay',
    names: 'pid money out_trade_no notify_url return_url name type token network currency sign sign_type',
  },
  {
    source: 'yzf.91d.cc/doc.html: submit.php of EPay',
    form: 'epay',
    names: 'pid type out_trade_no notify_url return_url name money param sign sign_type',
  },
  {
    source: 'xdpay.ldwl26.asia/Index/api.html: mapi.php of EPay',
    form: 'epay',
    names: 'pid type out_trade_no notify_url return_url name money param mid clientip device sign sign_type',
  },
  {
    source: 'docs.kyren.top: submit.php, compatible with EPay',
    form: 'epay',
    names: 'pid type out_trade_no notify_url return_url name money sign sign_type currency param',
  },
  {
    source: 'zf.haotian665.cn/doc.html: api.php?act=order of EPay',
    ...{ form: 'epayQuery', names: 'act pid key out_trade_no' },
  },
];

const [NOTIFY, BACK] = ['https://shop.example/notify', 'https://shop.example/back'];

/** The orders that plugins send, according to their published sources, with a price in CNY and no optional additions. */
export const PLUGIN_ORDERS: readonly {
  plugin: string;
  path: string;
  kinds: readonly ('epusdt' | 'bepusdt' | 'epay')[];
  order: Record<string, string | number>;
}[] = [
  {
    plugin: 'dujiaoka ee2c12ed, EpusdtController.php',
    ...{ path: '/api/v1/order/create-transaction', kinds: ['epusdt', 'bepusdt'] },
    order: { amount: 72.5, redirect_url: BACK, notify_url: NOTIFY },
  },
  {
    plugin: 'QDistinction/whcms-gateway-epusdt, epusdt.php',
    ...{ path: '/api/v1/order/create-transaction', kinds: ['epusdt', 'bepusdt'] },
    order: { amount: 72, notify_url: NOTIFY, redirect_url: `${BACK}.php?order_id=17` },
  },
  {
    plugin: 'v03413/Epay-BEpusdt, bepusdt_plugin.php',
    ...{ path: '/api/v1/order/create-transaction', kinds: ['epusdt', 'bepusdt'] },
    order: {
      ...{ fiat: 'CNY', address: '', trade_type: 'usdt.trc20', name: 'VIP 月卡', timeout: 0, rate: '', amount: 72 },
      ...{ notify_url: `${NOTIFY}/2026/`, redirect_url: `${BACK}/2026/` },
    },
  },
  {
    plugin: 'Xboard 9f5467ad, plugins-core/Epay/Plugin.php',
    ...{ path: '/submit.php', kinds: ['epay'] },
    order: { money: '72', name: '2026', notify_url: NOTIFY, return_url: `${BACK}#/order/2026`, pid: '1000' },
  },
  {
    plugin: 'dujiaoka ee2c12ed, YipayController.php',
    ...{ path: '/submit.php', kinds: ['epay'] },
    order: {
      ...{ pid: '1000', type: 'usdt', return_url: `${BACK}?order_id=2026`, notify_url: NOTIFY },
      ...{ name: '2026', money: '72', sign_type: 'MD5' },
    },
  },
  {
    plugin: 'SSPanel-UIM, src/Services/Gateway/Epay.php',
    ...{ path: '/mapi.php', kinds: ['epay'] },
    order: {
      ...{ pid: '1000', type: 'usdt', notify_url: NOTIFY, return_url: BACK, name: '2026', money: '72.00' },
      ...{ sitename: 'Shop & Co', clientip: '203.0.113.9', sign_type: 'MD5' },
    },
  },
  {
    plugin: 'WHMCS with EPay: the way back has two parameters',
    ...{ path: '/submit.php', kinds: ['epay'] },
    order: {
      ...{ pid: '1000', type: 'usdt', notify_url: NOTIFY, name: 'Invoice 17', money: '72.00', device: 'pc' },
      return_url: 'https://shop.example/viewinvoice.php?id=17&paymentsuccess=true',
    },
  },
];
