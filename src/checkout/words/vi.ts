import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Vietnamese. */
export const vi: Catalogue = {
  // The title of the window, in each state.
  titlePay: 'Thanh toán {amount} USDT cho {merchant}',
  titleFound: 'Đã tìm thấy khoản thanh toán: {merchant}',
  titlePaid: 'Đã thanh toán: {merchant}',
  titleReceipt: 'Biên lai: {merchant}',

  paymentTo: 'Thanh toán cho {merchant}',
  testNetwork: '**Thanh toán thử nghiệm.** Đây là mạng thử nghiệm {network}: đừng gửi tiền thật.',

  // The states.
  waiting: 'Đang chờ bạn thanh toán',
  expired: 'Đã hết thời gian, nhưng bạn vẫn có thể thanh toán',
  expiredText: 'Khoản thanh toán với đúng số tiền này vẫn được chấp nhận. Nếu đã gửi rồi, bạn không cần làm gì thêm.',
  found: 'Đã tìm thấy khoản thanh toán',
  foundText: '**Đừng gửi lại.** Bạn có thể đóng trang này.',
  paid: 'Đã thanh toán',
  paidText: 'Khoản thanh toán của bạn đã hoàn tất. Bạn không cần làm gì thêm.',
  gone: 'Đang chờ khoản thanh toán của bạn xuất hiện lại',
  goneText:
    'Mạng đã thay thế khối chứa khoản thanh toán của bạn. Việc này thỉnh thoảng xảy ra, và giao dịch thường tự xuất hiện lại trong vài phút. **Đừng gửi lại**, trừ khi ví báo giao dịch thất bại.',
  goneShow: 'Giao dịch thất bại? Hiển thị cách thanh toán',
  blindText:
    'Hiện chúng tôi không đọc được dữ liệu của mạng TRON. **Khoản thanh toán của bạn vẫn an toàn** và sẽ được tìm thấy ngay khi chúng tôi đọc lại được.',

  // How to pay.
  sendExactly: 'Gửi chính xác số tiền này',
  network: 'Chỉ USDT trên mạng TRON (TRC-20)',
  allDigits:
    'Mọi chữ số đều quan trọng: các chữ số cuối cho biết khoản thanh toán này là của bạn. Hãy kiểm tra xem ví có hiển thị đủ các chữ số không.',
  toAddress: 'Đến địa chỉ này',
  qrLabel: 'Mã QR của địa chỉ',
  qrHint: 'Mã QR chỉ chứa địa chỉ; bạn cần tự nhập số tiền. Tiền gửi qua bất kỳ mạng nào ngoài TRON đều sẽ bị mất.',
  oneTransfer:
    '**Chỉ chuyển một lần, đúng số tiền này.** Hệ thống không thể đối chiếu các khoản gửi từng phần hoặc gửi bù.',
  neverHistory: 'Đừng bao giờ sao chép địa chỉ từ lịch sử ví: kẻ gian cài vào đó các địa chỉ giả trông tương tự.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Thanh toán trước {time}',
  timeLeft: 'Còn {duration}.',
  timeLeftAtOpening: 'Khi trang này được mở, thời gian còn lại là {duration}.',
  lessThanMinute: 'Còn chưa đến một phút.',
  laterCounts: 'Thanh toán muộn hơn vẫn được chấp nhận.',
  clockStands: 'Thời gian thanh toán tạm dừng cho đến khi chúng tôi đọc lại được dữ liệu của mạng.',
  timeEnded: 'Thời gian thanh toán đã kết thúc: {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Đã tìm thấy trong khối {block}. Khoản thanh toán sẽ hoàn tất khi được khoảng {required} nhà sản xuất khối xác nhận, thường trong vòng một phút.',
  built: '{built}/{required}',

  // Facts of the payment.
  amount: 'Số tiền',
  time: 'Thời gian',
  block: 'Khối',
  transaction: 'Giao dịch',
  secondPayment:
    'Đã nhận được khoản thanh toán thứ hai với cùng số tiền: {transaction}. Hãy liên hệ {merchant} để được hoàn lại.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Sao chép',
  copied: 'Đã chép',
  selected: 'Đã chọn',
  copyAmount: 'Sao chép số tiền',
  copyAddress: 'Sao chép địa chỉ',
  copiedText: 'Đã sao chép: {text}',
  notCopied: 'Chưa sao chép được. Nội dung đã được chọn: hãy sao chép thủ công.',
  checkNow: 'Kiểm tra ngay',
  updatesItself: 'Trang này tự động cập nhật.',
  noConnection: 'Mất kết nối. Đang thử lại…',
  returnTo: 'Quay lại {merchant}',
  support: 'Bạn có thắc mắc? Liên hệ {merchant}: {contact}',
  changeLanguage: 'Ngôn ngữ',
  print: 'In',

  // Wallets.
  wallets: 'Mở trong ví',
  openTronLink: 'Mở trang này trong TronLink',
  openTrust: 'Thanh toán bằng Trust Wallet',
  walletsHint: 'Trước khi xác nhận, hãy so sánh số tiền và địa chỉ hiển thị trong ví với trang này.',
  payHere: 'Thanh toán bằng ví này',
  walletWait: 'Hãy xác nhận giao dịch chuyển tiền trong ví của bạn.',
  walletSent: 'Đã gửi. **Đừng gửi lại.** Trang này sẽ hiển thị khoản thanh toán ngay khi mạng ghi nhận giao dịch.',
  walletRefused: 'Ví không gửi giao dịch. Chưa có khoản tiền nào được thanh toán.',
  walletUnknown: 'Chúng tôi không biết ví đã gửi giao dịch hay chưa. Hãy xem lịch sử ví trước khi thử lại.',
  walletOtherNetwork: 'Ví này đang dùng mạng khác. Hãy chuyển sang {network}.',

  // The exchange's fee.
  feeTitle: 'Thanh toán từ sàn giao dịch?',
  feeText:
    'Nhiều sàn trừ phí vào số tiền gửi, nên số tiền thực nhận sẽ ít hơn. Hãy nhập phí, chúng tôi sẽ cho biết bạn cần nhập bao nhiêu trên sàn để số tiền thực nhận đúng bằng {amount} USDT.',
  feeLabel: 'Phí của sàn giao dịch (USDT)',
  feeButton: 'Tính',
  feeResult: 'Hãy nhập {total} USDT trên sàn: sau khi trừ phí {fee}, số tiền thực nhận sẽ đúng bằng {amount}.',
  feeCheck:
    'Hãy kiểm tra số tiền thực nhận mà sàn hiển thị. Nếu sàn cho phép nhập số tiền thực nhận, hãy nhập {amount} vào đó.',
  feeInvalid: 'Hãy nhập phí bằng số, tối đa 6 chữ số thập phân, ví dụ 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Kiểm tra địa chỉ bạn đã sao chép',
  pasteText:
    'Một số phần mềm độc hại thay đổi địa chỉ trong lúc sao chép. Hãy dán vào đây địa chỉ mà bạn sắp gửi tiền đến.',
  pasteLabel: 'Địa chỉ đã sao chép',
  pasteButton: 'So sánh',
  pasteSame: 'Địa chỉ trùng khớp.',
  pasteOther:
    '**Đây là một địa chỉ khác. Đừng gửi tiền đến đó.** Hãy sao chép lại địa chỉ từ trang này rồi kiểm tra lần nữa.',
  pasteNoAddress: 'Đây không phải là địa chỉ TRON. Hãy sao chép lại địa chỉ từ trang này.',

  // Finding a payment by its transaction.
  findTitle: 'Tôi đã thanh toán nhưng trang này không hiển thị',
  findOther: 'Tra cứu giao dịch khác',
  findText:
    'Hãy dán ID giao dịch (TxID) hoặc liên kết Tronscan từ ví hoặc sàn giao dịch của bạn. Chuyển tiền nội bộ trong sàn không tạo giao dịch trên TRON nên chúng tôi không thể nhận được.',
  findLabel: 'ID giao dịch (TxID) hoặc liên kết Tronscan',
  findButton: 'Tra cứu',
  searching: 'Đang tra cứu…',
  answerTitle: 'Thông tin về giao dịch này',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Giao dịch này đã thanh toán hóa đơn.** {amount} USDT trong khối {block}, đã hoàn tất. Bạn không cần làm gì thêm.',
  answerConfirming:
    '**Đây là khoản thanh toán của bạn.** {amount} USDT trong khối {block}: {built}/{required} xác nhận. Đừng gửi lại.',
  answerSecond:
    'Giao dịch này hoàn toàn đúng, nhưng đây là khoản thanh toán thứ hai: đã có một giao dịch khác đến trước, nên giao dịch này sẽ không được tính. Hãy liên hệ {merchant} để được hoàn tiền. Giao dịch đầu tiên: {transaction}',
  answerAlreadyPaid:
    'Giao dịch này hoàn toàn đúng, nhưng hóa đơn đã được thanh toán trước đó. Hãy liên hệ {merchant} để được hoàn tiền. Giao dịch được tính: {transaction}',
  answerAlreadyPaidOther:
    'Giao dịch này hoàn toàn đúng, nhưng hóa đơn đã được thanh toán trước đó. Hãy liên hệ {merchant} để được hoàn tiền.',
  answerNotExamined:
    '**Giao dịch này hoàn toàn đúng.** Chúng tôi chưa đọc khối {block} chứa giao dịch; giao dịch sẽ được tính trong một đến hai phút nữa. Đừng gửi lại.',
  answerNotConfirmed:
    'Giao dịch này có vẻ hoàn toàn đúng, nhưng chưa có đủ nút mạng báo rằng đã thấy giao dịch. Đừng gửi lại; hãy tra cứu lại sau {duration}.',
  answerNotRecorded:
    'Giao dịch này có vẻ hoàn toàn đúng, nhưng không có trong dữ liệu ghi nhận của chúng tôi. Đừng gửi lại: hãy cung cấp ID giao dịch này cho {merchant}.',
  answerBeforeInvoice:
    'Giao dịch này được gửi vào {time}, trước khi hóa đơn được tạo ({created}), nên không thể thanh toán hóa đơn này. Hãy liên hệ {merchant}.',
  answerShort:
    'Giao dịch này được gửi đến đúng địa chỉ, nhưng số tiền thực nhận là {arrived} USDT: ít hơn {by} so với {expected}. Hệ thống không thể tự đối chiếu. **Đừng gửi phần còn thiếu**; hãy liên hệ {merchant}.',
  answerOver:
    'Giao dịch này được gửi đến đúng địa chỉ, nhưng số tiền thực nhận là {arrived} USDT: nhiều hơn {by} so với {expected}. Hệ thống không thể tự đối chiếu. **Đừng gửi lại**; hãy liên hệ {merchant}.',
  likelyRequested: 'Đây là giá gốc, thiếu các chữ số cuối giúp nhận ra khoản thanh toán của bạn.',
  likelyFee: 'Phần chênh lệch có vẻ là phí đã bị trừ vào số tiền gửi.',
  likelyFeeAdded: 'Có vẻ một khoản phí đã được cộng vào số tiền nhưng sau đó không bị trừ.',
  likelyRounded: {
    other: 'Số tiền có vẻ đã bị làm tròn đến {count} chữ số thập phân.',
  },
  likelyTruncated: {
    other: 'Số tiền có vẻ đã bị cắt bớt, chỉ còn {count} chữ số thập phân.',
  },
  likelyDigit: 'Có một chữ số khác: có vẻ đã bị gõ nhầm.',
  likelySwapped: 'Hai chữ số cạnh nhau có vẻ đã bị đổi chỗ.',
  answerOtherAddress:
    'Giao dịch này đã gửi {amount} USDT đến một địa chỉ khác: {to}. Nếu {merchant} đã cung cấp địa chỉ đó cho bạn, hãy liên hệ {merchant} kèm ID giao dịch này. Nếu không, chỉ chủ sở hữu địa chỉ mới có thể hoàn tiền.',
  answerOtherToken:
    'Giao dịch này chuyển một token khác, không phải USDT, dù token đó mang tên gì (hợp đồng {contract}). Giao dịch này không thể thanh toán hóa đơn. Hãy liên hệ {merchant}.',
  answerFailed: 'Giao dịch này đã thất bại trên mạng: **không có khoản tiền nào được thanh toán bằng giao dịch này**.',
  failedMaySend: 'Nếu bạn chưa gửi giao dịch nào khác, bạn có thể gửi lại.',
  failedNotFinal: 'Kết quả này chưa phải là cuối cùng. Đừng gửi lại; hãy tra cứu lại sau {duration}.',
  failedOtherFound: 'Đã tìm thấy một khoản thanh toán khác. **Đừng gửi lại.**',
  failedEnergy: 'Ví không đủ năng lượng (Energy) hoặc TRX để trả phí mạng: hãy nạp thêm TRX.',
  failedTime: 'Giao dịch này đã vượt quá thời gian xử lý cho phép của mạng.',
  failedReverted: 'Hợp đồng của token đã từ chối giao dịch: có thể ví không đủ USDT.',
  failedOther: 'Thông báo của mạng: {result}.',
  answerTrxHere:
    'Giao dịch này đã gửi {amount} TRX đến đúng địa chỉ, nhưng TRX không phải là USDT, nên không thể thanh toán hóa đơn này. Hãy liên hệ {merchant}.',
  answerTrxElsewhere:
    'Giao dịch này đã gửi {amount} TRX đến một địa chỉ khác và không gửi USDT. Giao dịch này không thể thanh toán hóa đơn.',
  answerOtherMoved:
    'Giao dịch này chuyển một token khác và không chuyển USDT. Giao dịch này không thể thanh toán hóa đơn.',
  answerNothingMoved: 'Giao dịch này không chuyển USDT. Giao dịch này không thể thanh toán hóa đơn.',
  stillWaits: 'Hóa đơn này vẫn đang chờ thanh toán.',
  answerNotFound:
    'Mạng TRON chưa có giao dịch này. Nếu bạn vừa gửi, hãy tra cứu lại sau {duration}. Nếu sàn ghi đây là chuyển tiền nội bộ (internal) hoặc ngoài chuỗi (off-chain), giao dịch không nằm trên TRON và chúng tôi không thể nhận được: hãy liên hệ {merchant}.',
  answerNotTron:
    'Đây là giao dịch trên {chain}, không phải trên TRON. Chúng tôi không nhận được khoản thanh toán trên mạng khác. Hãy liên hệ bộ phận hỗ trợ của ví hoặc sàn giao dịch mà bạn đã dùng để gửi.',
  answerIsAddress: 'Đây là một địa chỉ. Chúng tôi cần ID của giao dịch: 64 chữ cái và chữ số.',
  answerIsPart: {
    other: 'Đây chỉ là một phần của ID giao dịch: {count} trên 64 ký tự. Hãy sao chép toàn bộ ID.',
  },
  answerIsLink: 'Chúng tôi không đọc được liên kết này. Hãy dán chính ID giao dịch: 64 chữ cái và chữ số.',
  answerIsOther:
    'Đây không phải là ID giao dịch. ID giao dịch gồm 64 chữ cái và chữ số, được ví hiển thị cùng với giao dịch.',
  answerUnavailable:
    'Hiện chúng tôi không thể tra cứu. Khoản thanh toán của bạn vẫn an toàn. Hãy thử lại sau {duration}.',
  answerLimited: 'Các lần tra cứu quá gần nhau. Hãy thử lại sau {duration}.',

  // The receipt.
  receipt: 'Biên lai',
  receiptLink: 'Biên lai để in hoặc lưu lại',
  receiptPaidTo: 'Bên nhận',
  receiptFrom: 'Từ',
  receiptTo: 'Đến',
  receiptNetwork: 'Mạng',
  receiptSigned: 'Biên lai có chữ ký số (JSON)',
  receiptProof:
    'Bất kỳ ai cũng có thể kiểm tra khoản thanh toán này trên mạng TRON qua giao dịch của nó. Biên lai có chữ ký số chứng minh rằng dịch vụ này đã xác nhận khoản thanh toán.',
  backToPayment: 'Quay lại trang thanh toán',

  // Where there is nothing to show.
  notFound: 'Không có hóa đơn nào tại liên kết này',
  notFoundText: 'Hãy mở lại liên kết từ nơi bạn nhận được, hoặc yêu cầu cửa hàng cấp liên kết mới.',
  notFoundPaid: 'Nếu bạn đã thanh toán, khoản thanh toán không bị mất: cửa hàng có thể tìm lại bằng ID giao dịch.',
  unavailable: 'Hiện không thể hiển thị trang này',
  unavailableText: 'Vui lòng tải lại trang sau một phút.',
  unavailablePaid: 'Nếu bạn đã thanh toán, khoản thanh toán của bạn vẫn an toàn và sẽ được tìm thấy. **Đừng gửi lại.**',
};
