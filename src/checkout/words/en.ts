/**
 * The words of the payer's page. `{name}` is filled in, `**…**` is strong. Plain and short: many who read this are anxious, and
 * English is nobody's but the translators' source. Where a text has several forms, the plural rule of the language chooses.
 */
export const en = {
  // The title of the window, in each state.
  titlePay: 'Pay {amount} USDT to {merchant}',
  titleFound: 'Payment found: {merchant}',
  titlePaid: 'Paid: {merchant}',
  titleReceipt: 'Receipt: {merchant}',

  paymentTo: 'Payment to {merchant}',
  testNetwork: '**Test payment.** This is the {network} test network: do not send real money.',

  // The states.
  waiting: 'Waiting for your payment',
  expired: 'The time is over, but you can still pay',
  expiredText:
    'A payment of exactly this amount still counts. If you have sent it already, there is nothing more to do.',
  found: 'Payment found',
  foundText: '**Do not send again.** You can close this page.',
  paid: 'Paid',
  paidText: 'Your payment is final. There is nothing more to do.',
  gone: 'Waiting for your payment to reappear',
  goneText:
    'The network has replaced the block that your payment was in. That happens now and then, and your transfer usually gets into a new block by itself within minutes. **Do not send again** unless your wallet says that the transfer failed.',
  goneShow: 'The transfer failed? Show how to pay',
  blindText:
    'We cannot see the TRON network right now. **Your payment is safe** and will be found as soon as we see it again.',

  // How to pay.
  sendExactly: 'Send exactly',
  network: 'USDT on TRON (TRC-20) only',
  allDigits:
    'All digits count: the last ones tell us that the payment is yours. Check that your wallet shows them all.',
  toAddress: 'To this address',
  qrLabel: 'QR code of the address',
  qrHint: 'The QR code holds only the address; type the amount. Money sent on any network but TRON is lost.',
  oneTransfer: '**One transfer, exactly this amount.** Parts and top-ups cannot be matched.',
  neverHistory: 'Never copy the address from your wallet’s history: fraudsters plant look-alikes there.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Pay by {time}',
  timeLeft: '{duration} left.',
  timeLeftAtOpening: '{duration} left when this page was opened.',
  lessThanMinute: 'Less than a minute left.',
  laterCounts: 'A later payment still counts.',
  clockStands: 'The time to pay stands still until we see the network again.',
  timeEnded: 'The time to pay ended: {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Found in block {block}. It is final when about {required} block producers have confirmed it, usually within a minute.',
  built: '{built} of {required}',

  // Facts of the payment.
  amount: 'Amount',
  time: 'Time',
  block: 'Block',
  transaction: 'Transaction',
  secondPayment: 'A second payment of the same amount arrived: {transaction}. Contact {merchant} to get it back.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Copy',
  copied: 'Copied',
  selected: 'Selected',
  copyAmount: 'Copy the amount',
  copyAddress: 'Copy the address',
  copiedText: 'Copied: {text}',
  notCopied: 'Not copied. It is selected: copy it by hand.',
  checkNow: 'Check now',
  updatesItself: 'This page updates itself.',
  noConnection: 'No connection. Trying again…',
  returnTo: 'Return to {merchant}',
  support: 'Questions? Contact {merchant}: {contact}',
  changeLanguage: 'Language',
  print: 'Print',

  // Wallets.
  wallets: 'Open in a wallet',
  openTronLink: 'Open this page in TronLink',
  openTrust: 'Pay with Trust Wallet',
  walletsHint: 'Compare the amount and the address in the wallet with this page before you confirm.',
  payHere: 'Pay with this wallet',
  walletWait: 'Confirm the transfer in your wallet.',
  walletSent: 'Sent. **Do not send again.** This page shows the payment as soon as the network has it.',
  walletRefused: 'The wallet did not send it. Nothing was paid.',
  walletUnknown: 'We do not know whether the wallet sent it. Check your wallet’s history before you try again.',
  walletOtherNetwork: 'This wallet is on another network. Switch it to {network}.',

  // The exchange's fee.
  feeTitle: 'Paying from an exchange?',
  feeText:
    'Many exchanges take their fee from the amount, so that less arrives. Enter the fee, and we tell you what to type so that exactly {amount} USDT arrives.',
  feeLabel: 'Exchange fee in USDT',
  feeButton: 'Calculate',
  feeResult: 'Type {total} USDT at the exchange: after its fee of {fee} exactly {amount} arrives.',
  feeCheck:
    'Check what the exchange says will arrive. If it lets you enter the amount that arrives, enter {amount} there.',
  feeInvalid: 'Enter the fee as a number with at most 6 decimals, for example 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Check the address that you copied',
  pasteText: 'Some malware changes addresses while they are copied. Paste here what you are about to send to.',
  pasteLabel: 'The copied address',
  pasteButton: 'Compare',
  pasteSame: 'It is the same address.',
  pasteOther:
    '**It is another address. Do not send to it.** Copy the address again from this page, and check it again.',
  pasteNoAddress: 'This is not a TRON address. Copy the address again from this page.',

  // Finding a payment by its transaction.
  findTitle: 'I have paid, but this page does not show it',
  findOther: 'Look up another transaction',
  findText:
    'Paste the transaction ID (TxID) or the Tronscan link from your wallet or exchange. A transfer inside an exchange has no TRON transaction and cannot reach us.',
  findLabel: 'Transaction ID or Tronscan link',
  findButton: 'Look up',
  searching: 'Looking up…',
  answerTitle: 'What we know of this transaction',

  // The answers. `{merchant}` is who gets the money.
  answerPaid: '**It has paid this invoice.** {amount} USDT in block {block}, final. There is nothing more to do.',
  answerConfirming:
    '**It is your payment.** {amount} USDT in block {block}: {built} of {required} confirmations. Do not send again.',
  answerSecond:
    'It is exactly right, but it is a second payment: another one came first, and this one will pay nothing. Contact {merchant} to get it back. The first one: {transaction}',
  answerAlreadyPaid:
    'It is exactly right, but this invoice was paid before. Contact {merchant} to get it back. The payment that counts: {transaction}',
  answerAlreadyPaidOther: 'It is exactly right, but this invoice was paid before. Contact {merchant} to get it back.',
  answerNotExamined:
    '**It is exactly right.** We have not read its block {block} yet; it will count within a minute or two. Do not send again.',
  answerNotConfirmed:
    'It looks exactly right, but not enough nodes of the network have shown it to us yet. Do not send again; look again in {duration}.',
  answerNotRecorded:
    'It looks exactly right, but it is not in our books. Do not send again: give this transaction ID to {merchant}.',
  answerBeforeInvoice:
    'It was sent at {time}, before this invoice was made at {created}, so it cannot pay it. Contact {merchant}.',
  answerShort:
    'It was sent to the right address, but {arrived} USDT arrived: {by} less than {expected}. It cannot be matched by itself. **Do not send the rest**; contact {merchant}.',
  answerOver:
    'It was sent to the right address, but {arrived} USDT arrived: {by} more than {expected}. It cannot be matched by itself. **Do not send again**; contact {merchant}.',
  likelyRequested: 'It is the price without the last digits that make this payment yours.',
  likelyFee: 'The difference looks like a fee that was taken from the amount.',
  likelyFeeAdded: 'It looks as if a fee was added to the amount and then not taken.',
  likelyRounded: {
    one: 'The amount seems to have been rounded to {count} decimal.',
    other: 'The amount seems to have been rounded to {count} decimals.',
  },
  likelyTruncated: {
    one: 'The amount seems to have been cut off after {count} decimal.',
    other: 'The amount seems to have been cut off after {count} decimals.',
  },
  likelyDigit: 'One digit differs: it seems to have been mistyped.',
  likelySwapped: 'Two neighbouring digits seem to have been swapped.',
  answerOtherAddress:
    'It sent {amount} USDT to another address: {to}. If {merchant} gave you that address, contact {merchant} with this transaction ID. Otherwise only its owner can return the money.',
  answerOtherToken:
    'It moved another token, not USDT, whatever the token calls itself (contract {contract}). It cannot pay this invoice. Contact {merchant}.',
  answerFailed: 'It failed on the network: **it paid nothing**.',
  failedMaySend: 'If you have not sent another one, you can send again.',
  failedNotFinal: 'That is not final yet. Do not send again; look again in {duration}.',
  failedOtherFound: 'Another payment was found. **Do not send again.**',
  failedEnergy: 'The wallet had too little energy or TRX for the network fee: it needs more TRX.',
  failedTime: 'The network ran out of time for it.',
  failedReverted: 'The token contract refused it: perhaps the wallet had too little USDT.',
  failedOther: 'The network says: {result}.',
  answerTrxHere:
    'It sent {amount} TRX to the right address, but TRX is not USDT, so it cannot pay this invoice. Contact {merchant}.',
  answerTrxElsewhere: 'It sent {amount} TRX to another address, and no USDT. It cannot pay this invoice.',
  answerOtherMoved: 'It moved another token and no USDT. It cannot pay this invoice.',
  answerNothingMoved: 'It moved no USDT. It cannot pay this invoice.',
  stillWaits: 'This invoice is still waiting for its payment.',
  answerNotFound:
    'The TRON network does not know it yet. If you have just sent it, look again in {duration}. If your exchange shows it as internal or off-chain, it is not on TRON and cannot reach us: contact {merchant}.',
  answerNotTron:
    'This is a transaction of {chain}, not of TRON. A payment on another network does not reach us. Contact the wallet or exchange that you sent from.',
  answerIsAddress: 'This is an address. We need the ID of the transaction: 64 letters and digits.',
  answerIsPart: {
    one: 'This is only a part of a transaction ID: {count} character of 64. Copy the whole ID.',
    other: 'This is only a part of a transaction ID: {count} characters of 64. Copy the whole ID.',
  },
  answerIsLink: 'We cannot read this link. Paste the transaction ID itself: 64 letters and digits.',
  answerIsOther:
    'This is not a transaction ID. A transaction ID has 64 letters and digits, and your wallet shows it with the transfer.',
  answerUnavailable: 'We cannot look it up right now. Your payment is safe. Try again in {duration}.',
  answerLimited: 'That was quick. Try again in {duration}.',

  // The receipt.
  receipt: 'Receipt',
  receiptLink: 'Receipt to print or keep',
  receiptPaidTo: 'Paid to',
  receiptFrom: 'From',
  receiptTo: 'To',
  receiptNetwork: 'Network',
  receiptSigned: 'Signed receipt (JSON)',
  receiptProof:
    'Anyone can check this payment on the TRON network by its transaction. The signed receipt proves that this service has confirmed it.',
  backToPayment: 'Back to the payment',

  // Where there is nothing to show.
  notFound: 'There is no invoice at this link',
  notFoundText: 'Open the link again from where you got it, or ask the shop for a new one.',
  notFoundPaid: 'If you have paid already, your payment is not lost: the shop can find it by its transaction ID.',
  unavailable: 'This page cannot be shown right now',
  unavailableText: 'Please reload it in a minute.',
  unavailablePaid: 'If you have paid already, your payment is safe and will be found. **Do not send it again.**',
} as const;
