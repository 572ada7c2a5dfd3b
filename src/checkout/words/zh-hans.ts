import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Simplified Chinese. */
export const zhHans: Catalogue = {
  // The title of the window, in each state.
  titlePay: '向 {merchant} 支付 {amount} USDT',
  titleFound: '已检测到付款：{merchant}',
  titlePaid: '支付成功：{merchant}',
  titleReceipt: '收据：{merchant}',

  paymentTo: '付款给 {merchant}',
  testNetwork: '**测试付款。**这是 {network} 测试网络，请勿发送真实资金。',

  // The states.
  waiting: '等待您付款',
  expired: '付款时间已过，但您仍可付款',
  expiredText: '只要金额完全一致，付款仍然有效。如果您已经付款，则无需再做任何操作。',
  found: '已检测到付款',
  foundText: '**请勿重复付款。**您可以关闭此页面。',
  paid: '支付成功',
  paidText: '您的付款已最终确认，无需再做任何操作。',
  gone: '正在重新等待您的付款上链',
  goneText:
    '您的付款所在的区块已被网络替换。这种情况偶尔会发生，您的转账通常会在几分钟内自动重新上链。**请勿重复付款**，除非钱包显示转账失败。',
  goneShow: '转账失败了？显示付款方式',
  blindText: '我们暂时无法读取 TRON 网络的数据。**您的付款是安全的**，恢复读取后即会检测到。',

  // How to pay.
  sendExactly: '请准确发送以下金额',
  network: '仅限 TRON（TRC-20）网络上的 USDT',
  allDigits: '每一位数字都很重要：我们靠末尾几位识别您的付款。请确认钱包完整显示了所有数字。',
  toAddress: '发送到此地址',
  qrLabel: '收款地址的二维码',
  qrHint: '二维码只包含地址，金额需手动输入。通过 TRON 以外的任何网络转账，资金都会丢失。',
  oneTransfer: '**只转一笔，金额须完全一致。**分笔转账或补转差额均无法匹配。',
  neverHistory: '切勿从钱包的转账记录中复制地址：骗子会在其中植入相似的假地址。',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: '请在 {time} 前付款',
  timeLeft: '剩余 {duration}。',
  timeLeftAtOpening: '打开此页面时剩余 {duration}。',
  lessThanMinute: '剩余不到 1 分钟。',
  laterCounts: '超时后付款仍然有效。',
  clockStands: '付款倒计时已暂停，待我们恢复读取网络数据后继续。',
  timeEnded: '付款时间已于 {time} 结束。',

  // While blocks are built on it.
  foundInBlock: '已在区块 {block} 中检测到。经约 {required} 个出块节点确认后，付款即最终确认，通常在 1 分钟内完成。',
  built: '{built} / {required}',

  // Facts of the payment.
  amount: '金额',
  time: '时间',
  block: '区块',
  transaction: '交易',
  secondPayment: '又收到一笔相同金额的付款：{transaction}。请联系 {merchant} 取回。',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: '复制',
  copied: '已复制',
  selected: '已选中',
  copyAmount: '复制金额',
  copyAddress: '复制地址',
  copiedText: '已复制：{text}',
  notCopied: '未能复制。内容已选中，请手动复制。',
  checkNow: '立即查询',
  updatesItself: '此页面会自动更新。',
  noConnection: '连接已断开，正在重试……',
  returnTo: '返回 {merchant}',
  support: '有疑问？请联系 {merchant}：{contact}',
  changeLanguage: '语言',
  print: '打印',

  // Wallets.
  wallets: '在钱包中打开',
  openTronLink: '在 TronLink 中打开此页面',
  openTrust: '使用 Trust Wallet 付款',
  walletsHint: '确认前，请核对钱包中显示的金额和地址是否与此页面一致。',
  payHere: '使用此钱包付款',
  walletWait: '请在钱包中确认转账。',
  walletSent: '已发送。**请勿重复付款。**网络收到后，此页面会立即显示这笔付款。',
  walletRefused: '钱包未发送转账，您没有支付任何款项。',
  walletUnknown: '我们无法确定钱包是否已发送转账。重试之前，请先查看钱包的转账记录。',
  walletOtherNetwork: '此钱包连接的是其他网络，请切换到 {network}。',

  // The exchange's fee.
  feeTitle: '从交易所付款？',
  feeText:
    '许多交易所会从转账金额中扣除手续费，导致到账金额变少。请输入手续费，我们会告诉您应填写多少，才能刚好到账 {amount} USDT。',
  feeLabel: '交易所手续费（USDT）',
  feeButton: '计算',
  feeResult: '请在交易所填写 {total} USDT：扣除 {fee} 手续费后，刚好到账 {amount}。',
  feeCheck: '请核对交易所显示的到账金额。如果交易所支持直接填写到账金额，请填写 {amount}。',
  feeInvalid: '请以数字填写手续费，最多 6 位小数，例如 1.5。',

  // The address in the clipboard.
  pasteTitle: '检查您复制的地址',
  pasteText: '有些恶意软件会在复制过程中篡改地址。请将您准备转账的目标地址粘贴到这里。',
  pasteLabel: '您复制的地址',
  pasteButton: '比对',
  pasteSame: '地址一致。',
  pasteOther: '**这是另一个地址。请勿向它转账。**请从此页面重新复制地址，并再次检查。',
  pasteNoAddress: '这不是 TRON 地址。请从此页面重新复制地址。',

  // Finding a payment by its transaction.
  findTitle: '我已付款，但此页面没有显示',
  findOther: '查询另一笔交易',
  findText:
    '请粘贴钱包或交易所提供的交易哈希（TxID）或 Tronscan 链接。交易所内部转账不会产生 TRON 交易，我们无法收到。',
  findLabel: '交易哈希（TxID）或 Tronscan 链接',
  findButton: '查询',
  searching: '正在查询……',
  answerTitle: '这笔交易的查询结果',

  // The answers. `{merchant}` is who gets the money.
  answerPaid: '**此账单已由这笔交易支付。**{amount} USDT，区块 {block}，已最终确认。无需再做任何操作。',
  answerConfirming: '**这是您的付款。**{amount} USDT，区块 {block}，确认数 {built} / {required}。请勿重复付款。',
  answerSecond:
    '这笔交易完全正确，但它是第二笔付款：之前已有另一笔，因此这一笔不会被计入。请联系 {merchant} 退款。第一笔：{transaction}',
  answerAlreadyPaid: '这笔交易完全正确，但此账单之前已支付。请联系 {merchant} 退款。已计入的付款：{transaction}',
  answerAlreadyPaidOther: '这笔交易完全正确，但此账单之前已支付。请联系 {merchant} 退款。',
  answerNotExamined: '**这笔交易完全正确。**我们尚未读取其所在的区块 {block}，一两分钟内就会将它计入。请勿重复付款。',
  answerNotConfirmed:
    '这笔交易看起来完全正确，但目前能查到它的网络节点还不够多。请勿重复付款，并在 {duration}后再次查询。',
  answerNotRecorded:
    '这笔交易看起来完全正确，但我们的账目中没有它的记录。请勿重复付款，并将此交易哈希提供给 {merchant}。',
  answerBeforeInvoice:
    '这笔交易发送于 {time}，早于此账单的创建时间 {created}，因此不能用于支付此账单。请联系 {merchant}。',
  answerShort:
    '这笔交易的地址正确，但实际到账 {arrived} USDT，比应付的 {expected} 少 {by}。系统无法自动匹配。**请勿补转差额**，请联系 {merchant}。',
  answerOver:
    '这笔交易的地址正确，但实际到账 {arrived} USDT，比应付的 {expected} 多 {by}。系统无法自动匹配。**请勿重复付款**，请联系 {merchant}。',
  likelyRequested: '这是原价，缺少用于识别您付款的末尾几位数字。',
  likelyFee: '差额看起来是从转账金额中扣除的手续费。',
  likelyFeeAdded: '看起来金额中加上了手续费，但之后并未扣除。',
  likelyRounded: {
    other: '金额似乎被四舍五入到 {count} 位小数。',
  },
  likelyTruncated: {
    other: '金额似乎只保留了 {count} 位小数，其余被截去。',
  },
  likelyDigit: '有一位数字不同，可能是输入有误。',
  likelySwapped: '有两位相邻的数字似乎颠倒了。',
  answerOtherAddress:
    '这笔交易将 {amount} USDT 转到了另一个地址：{to}。如果该地址是 {merchant} 提供给您的，请凭此交易哈希联系 {merchant}。否则只有该地址的所有者才能退款。',
  answerOtherToken:
    '这笔交易转移的是其他代币，不是 USDT，无论其名称是什么（合约 {contract}）。它不能用于支付此账单。请联系 {merchant}。',
  answerFailed: '这笔交易在网络上失败了：**它没有支付任何款项**。',
  failedMaySend: '如果您没有发送其他转账，可以重新发送。',
  failedNotFinal: '这还不是最终结果。请勿重复付款，并在 {duration}后再次查询。',
  failedOtherFound: '已检测到另一笔付款。**请勿重复付款。**',
  failedEnergy: '钱包中的能量或 TRX 不足以支付网络手续费：需要存入更多 TRX。',
  failedTime: '网络处理这笔交易时超时了。',
  failedReverted: '代币合约拒绝了这笔交易：可能是钱包中的 USDT 不足。',
  failedOther: '网络返回的信息：{result}。',
  answerTrxHere:
    '这笔交易向正确的地址发送了 {amount} TRX，但 TRX 不是 USDT，因此不能用于支付此账单。请联系 {merchant}。',
  answerTrxElsewhere: '这笔交易向另一个地址发送了 {amount} TRX，没有发送 USDT。它不能用于支付此账单。',
  answerOtherMoved: '这笔交易转移的是其他代币，没有转移 USDT。它不能用于支付此账单。',
  answerNothingMoved: '这笔交易没有转移 USDT。它不能用于支付此账单。',
  stillWaits: '此账单仍在等待付款。',
  answerNotFound:
    'TRON 网络上暂时查不到这笔交易。如果您刚刚发送，请在 {duration}后再次查询。如果交易所将其显示为内部转账或链下（off-chain）转账，则它不在 TRON 网络上，我们无法收到：请联系 {merchant}。',
  answerNotTron:
    '这是 {chain} 的交易，不是 TRON 的交易。其他网络上的付款我们无法收到。请联系您转账时使用的钱包或交易所。',
  answerIsAddress: '这是一个地址。我们需要的是交易哈希，由 64 位字母和数字组成。',
  answerIsPart: {
    other: '这只是交易哈希的一部分：共 64 位，这里只有 {count} 位。请复制完整的交易哈希。',
  },
  answerIsLink: '我们无法识别此链接。请直接粘贴交易哈希（64 位字母和数字）。',
  answerIsOther: '这不是交易哈希。交易哈希由 64 位字母和数字组成，可在钱包的转账详情中找到。',
  answerUnavailable: '我们暂时无法查询。您的付款是安全的。请在 {duration}后重试。',
  answerLimited: '两次查询间隔太短。请在 {duration}后重试。',

  // The receipt.
  receipt: '收据',
  receiptLink: '打印或保存收据',
  receiptPaidTo: '收款方',
  receiptFrom: '转出地址',
  receiptTo: '转入地址',
  receiptNetwork: '网络',
  receiptSigned: '已签名的收据（JSON）',
  receiptProof: '任何人都可以在 TRON 网络上通过这笔交易核验此付款。已签名的收据可证明本服务已确认此付款。',
  backToPayment: '返回付款页面',

  // Where there is nothing to show.
  notFound: '此链接没有对应的账单',
  notFoundText: '请从您获得链接的地方重新打开，或向商家索取新的链接。',
  notFoundPaid: '如果您已经付款，款项不会丢失：商家可以通过交易哈希找到它。',
  unavailable: '此页面暂时无法显示',
  unavailableText: '请在一分钟后重新加载。',
  unavailablePaid: '如果您已经付款，您的付款是安全的，之后会被检测到。**请勿重复付款。**',
};
