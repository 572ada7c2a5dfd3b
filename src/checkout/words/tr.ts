import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Turkish. */
export const tr: Catalogue = {
  // The title of the window, in each state.
  titlePay: '{amount} USDT ödeyin: {merchant}',
  titleFound: 'Ödeme bulundu: {merchant}',
  titlePaid: 'Ödendi: {merchant}',
  titleReceipt: 'Makbuz: {merchant}',

  paymentTo: 'Ödeme alıcısı: {merchant}',
  testNetwork: '**Test ödemesi.** Bu, {network} test ağıdır: gerçek para göndermeyin.',

  // The states.
  waiting: 'Ödemeniz bekleniyor',
  expired: 'Süre doldu, ancak yine de ödeyebilirsiniz',
  expiredText:
    'Tam bu tutarda bir ödeme yine de geçerli sayılır. Ödemeyi zaten gönderdiyseniz yapmanız gereken başka bir şey yok.',
  found: 'Ödeme bulundu',
  foundText: '**Tekrar göndermeyin.** Bu sayfayı kapatabilirsiniz.',
  paid: 'Ödendi',
  paidText: 'Ödemeniz kesinleşti. Yapmanız gereken başka bir şey yok.',
  gone: 'Ödemeniz yeniden bekleniyor',
  goneText:
    'Ağ, ödemenizin bulunduğu bloğu değiştirdi. Bu ara sıra olur; transferiniz genellikle birkaç dakika içinde kendiliğinden yeni bir bloğa girer. Cüzdanınız transferin başarısız olduğunu bildirmedikçe **tekrar göndermeyin**.',
  goneShow: 'Transfer başarısız mı oldu? Nasıl ödeneceğini göster',
  blindText: 'Şu anda TRON ağını göremiyoruz. **Ödemeniz güvende**; ağı yeniden gördüğümüz anda bulunacak.',

  // How to pay.
  sendExactly: 'Tam olarak bu tutarı gönderin',
  network: 'Yalnızca TRON (TRC-20) ağında USDT',
  allDigits:
    'Tüm rakamlar önemlidir: ödemenin size ait olduğunu son rakamlardan anlarız. Cüzdanınızın hepsini gösterdiğinden emin olun.',
  toAddress: 'Bu adrese',
  qrLabel: 'Adresin QR kodu',
  qrHint:
    'QR kodunda yalnızca adres vardır; tutarı kendiniz girin. TRON dışında bir ağ üzerinden gönderilen para kaybolur.',
  oneTransfer: '**Tek transfer, tam bu tutar.** Parçalı ödemeler ve sonradan yapılan eklemeler eşleştirilemez.',
  neverHistory:
    'Adresi asla cüzdanınızın geçmişinden kopyalamayın: dolandırıcılar oraya benzer görünen adresler yerleştirir.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Son ödeme zamanı: {time}',
  timeLeft: '{duration} kaldı.',
  timeLeftAtOpening: 'Bu sayfa açıldığında {duration} kalmıştı.',
  lessThanMinute: 'Bir dakikadan az kaldı.',
  laterCounts: 'Daha sonra yapılan ödeme de geçerlidir.',
  clockStands: 'Ağı yeniden görene kadar ödeme süresi işlemez.',
  timeEnded: 'Ödeme süresi doldu: {time}.',

  // While blocks are built on it.
  foundInBlock:
    '{block} numaralı blokta bulundu. Yaklaşık {required} blok üreticisi onayladığında kesinleşir; bu genellikle bir dakikadan kısa sürer.',
  built: '{built} / {required}',

  // Facts of the payment.
  amount: 'Tutar',
  time: 'Zaman',
  block: 'Blok',
  transaction: 'İşlem',
  secondPayment: 'Aynı tutarda ikinci bir ödeme geldi: {transaction}. Geri almak için {merchant} ile iletişime geçin.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Kopyala',
  copied: 'Kopyalandı',
  selected: 'Seçildi',
  copyAmount: 'Tutarı Kopyala',
  copyAddress: 'Adresi Kopyala',
  copiedText: 'Kopyalandı: {text}',
  notCopied: 'Kopyalanamadı. Metin seçildi; elle kopyalayın.',
  checkNow: 'Şimdi kontrol et',
  updatesItself: 'Bu sayfa kendiliğinden güncellenir.',
  noConnection: 'Bağlantı yok. Yeniden deneniyor…',
  returnTo: 'Satıcıya dön: {merchant}',
  support: 'Sorunuz mu var? {merchant} ile iletişime geçin: {contact}',
  changeLanguage: 'Dil',
  print: 'Yazdır',

  // Wallets.
  wallets: 'Cüzdanda aç',
  openTronLink: 'Bu sayfayı TronLink uygulamasında aç',
  openTrust: 'Trust Wallet ile öde',
  walletsHint: 'Onaylamadan önce cüzdandaki tutarı ve adresi bu sayfayla karşılaştırın.',
  payHere: 'Bu cüzdanla öde',
  walletWait: 'Transferi cüzdanınızda onaylayın.',
  walletSent: 'Gönderildi. **Tekrar göndermeyin.** Ödeme ağa ulaştığı anda bu sayfada görünür.',
  walletRefused: 'Cüzdan transferi göndermedi. Hiçbir ödeme yapılmadı.',
  walletUnknown:
    'Cüzdanın transferi gönderip göndermediğini bilmiyoruz. Yeniden denemeden önce cüzdanınızın geçmişine bakın.',
  walletOtherNetwork: 'Bu cüzdan başka bir ağda. Cüzdanda {network} ağına geçin.',

  // The exchange's fee.
  feeTitle: 'Borsadan mı ödüyorsunuz?',
  feeText:
    'Birçok borsa ücretini tutardan keser, bu yüzden daha azı ulaşır. Ücreti girin; tam {amount} USDT ulaşması için hangi tutarı yazmanız gerektiğini söyleyelim.',
  feeLabel: 'Borsanın çekim ücreti (USDT)',
  feeButton: 'Hesapla',
  feeResult: 'Borsaya {total} USDT girin: {fee} ücret kesildikten sonra tam {amount} ulaşır.',
  feeCheck:
    'Borsanın, ulaşacak tutar olarak ne gösterdiğini kontrol edin. Borsa ulaşacak tutarı girmenize izin veriyorsa oraya {amount} girin.',
  feeInvalid: 'Ücreti, noktadan sonra en fazla 6 basamaklı bir sayı olarak girin, örneğin 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Kopyaladığınız adresi kontrol edin',
  pasteText:
    'Bazı kötü amaçlı yazılımlar adresi kopyalama sırasında değiştirir. Gönderim yapacağınız adresi buraya yapıştırın.',
  pasteLabel: 'Kopyalanan adres',
  pasteButton: 'Karşılaştır',
  pasteSame: 'Aynı adres.',
  pasteOther:
    '**Bu başka bir adres. Bu adrese göndermeyin.** Adresi bu sayfadan yeniden kopyalayın ve bir daha kontrol edin.',
  pasteNoAddress: 'Bu bir TRON adresi değil. Adresi bu sayfadan yeniden kopyalayın.',

  // Finding a payment by its transaction.
  findTitle: 'Ödedim, ancak bu sayfada görünmüyor',
  findOther: 'Başka bir işlemi sorgula',
  findText:
    'Cüzdanınızdaki veya borsanızdaki işlem kimliğini (TxID) ya da Tronscan bağlantısını yapıştırın. Borsa içi transferlerin TRON ağında işlemi yoktur; bu transferler bize ulaşamaz.',
  findLabel: 'İşlem kimliği veya Tronscan bağlantısı',
  findButton: 'Sorgula',
  searching: 'Aranıyor…',
  answerTitle: 'Bu işlem hakkında bilinenler',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Bu fatura bu işlemle ödendi.** {amount} USDT, {block} numaralı blokta; ödeme kesinleşti. Yapmanız gereken başka bir şey yok.',
  answerConfirming:
    '**Bu sizin ödemeniz.** {amount} USDT, {block} numaralı blokta; onay: {built} / {required}. Tekrar göndermeyin.',
  answerSecond:
    'Bu transferde her şey doğru, ancak bu ikinci bir ödeme: önce başka bir ödeme ulaştı, bu transfer fatura için geçerli sayılmayacak. Paranızı geri almak için {merchant} ile iletişime geçin. İlk ödeme: {transaction}',
  answerAlreadyPaid:
    'Bu transferde her şey doğru, ancak bu fatura daha önce ödenmişti. Paranızı geri almak için {merchant} ile iletişime geçin. Geçerli sayılan ödeme: {transaction}',
  answerAlreadyPaidOther:
    'Bu transferde her şey doğru, ancak bu fatura daha önce ödenmişti. Paranızı geri almak için {merchant} ile iletişime geçin.',
  answerNotExamined:
    '**Bu transferde her şey doğru.** Bulunduğu bloğu ({block}) henüz okumadık; transfer bir iki dakika içinde geçerli sayılacak. Tekrar göndermeyin.',
  answerNotConfirmed:
    'Bu transferde her şey doğru görünüyor, ancak ağdaki yeterli sayıda düğüm onu bize henüz göstermedi. Tekrar göndermeyin; {duration} sonra yeniden kontrol edin.',
  answerNotRecorded:
    'Bu transferde her şey doğru görünüyor, ancak kayıtlarımızda yok. Tekrar göndermeyin: {merchant} ile iletişime geçip bu işlem kimliğini iletin.',
  answerBeforeInvoice:
    'Bu fatura oluşturulmadan önce gönderilmiş (gönderim: {time}, fatura: {created}); bu yüzden faturanın ödemesi sayılmaz. {merchant} ile iletişime geçin.',
  answerShort:
    'Doğru adrese gönderildi, ancak {arrived} USDT ulaştı: beklenen tutar {expected}, eksik {by}. Otomatik olarak eşleştirilemez. **Kalanı göndermeyin**; {merchant} ile iletişime geçin.',
  answerOver:
    'Doğru adrese gönderildi, ancak {arrived} USDT ulaştı: beklenen tutar {expected}, fazla {by}. Otomatik olarak eşleştirilemez. **Tekrar göndermeyin**; {merchant} ile iletişime geçin.',
  likelyRequested: 'Bu, ödemenin size ait olduğunu gösteren son rakamların eklenmediği fiyattır.',
  likelyFee: 'Aradaki fark, tutardan kesilmiş bir ücrete benziyor.',
  likelyFeeAdded: 'Tutara bir ücret eklenmiş, ancak bu ücret kesilmemiş gibi görünüyor.',
  likelyRounded: {
    one: 'Tutar, noktadan sonra {count} basamağa yuvarlanmış görünüyor.',
    other: 'Tutar, noktadan sonra {count} basamağa yuvarlanmış görünüyor.',
  },
  likelyTruncated: {
    one: 'Tutar, noktadan sonra {count} basamakta kesilmiş görünüyor.',
    other: 'Tutar, noktadan sonra {count} basamakta kesilmiş görünüyor.',
  },
  likelyDigit: 'Bir rakam farklı: yanlış yazılmış görünüyor.',
  likelySwapped: 'Yan yana iki rakamın yeri değişmiş görünüyor.',
  answerOtherAddress:
    '{amount} USDT başka bir adrese gönderildi: {to}. Bu adresi size {merchant} verdiyse bu işlem kimliğiyle {merchant} ile iletişime geçin. Aksi hâlde parayı yalnızca adresin sahibi iade edebilir.',
  answerOtherToken:
    'Adı ne olursa olsun USDT değil, başka bir token aktarılmış (sözleşme: {contract}). Bu faturanın ödemesi sayılmaz. {merchant} ile iletişime geçin.',
  answerFailed: 'İşlem ağda başarısız oldu: **bu işlemle ödeme yapılmadı**.',
  failedMaySend: 'Başka bir transfer göndermediyseniz yeniden gönderebilirsiniz.',
  failedNotFinal: 'Bu henüz kesin değil. Tekrar göndermeyin; {duration} sonra yeniden kontrol edin.',
  failedOtherFound: 'Başka bir ödeme bulundu. **Tekrar göndermeyin.**',
  failedEnergy: 'Cüzdanda ağ ücreti için yeterli enerji veya TRX yoktu: cüzdana TRX ekleyin.',
  failedTime: 'Ağın bu işleme ayırdığı süre yetmedi.',
  failedReverted: 'Token sözleşmesi transferi reddetti: cüzdanda yeterli USDT olmayabilir.',
  failedOther: 'Ağın yanıtı: {result}.',
  answerTrxHere:
    'Doğru adrese {amount} TRX gönderilmiş, ancak TRX, USDT değildir; bu yüzden faturanın ödemesi sayılmaz. {merchant} ile iletişime geçin.',
  answerTrxElsewhere: 'Başka bir adrese {amount} TRX gönderilmiş, USDT gönderilmemiş. Bu faturanın ödemesi sayılmaz.',
  answerOtherMoved: 'USDT değil, başka bir token aktarılmış. Bu faturanın ödemesi sayılmaz.',
  answerNothingMoved: 'Bu işlemde USDT aktarılmamış. Bu faturanın ödemesi sayılmaz.',
  stillWaits: 'Bu fatura hâlâ ödeme bekliyor.',
  answerNotFound:
    'TRON ağı bu işlemi henüz bilmiyor. Yeni gönderdiyseniz {duration} sonra yeniden kontrol edin. Borsanız bunu dahili veya zincir dışı (internal, off-chain) gösteriyorsa TRON ağında değildir ve bize ulaşamaz: {merchant} ile iletişime geçin.',
  answerNotTron:
    'Bu bir {chain} işlemi, TRON işlemi değil. Başka bir ağdaki ödeme bize ulaşmaz. Gönderim yaptığınız cüzdanın veya borsanın desteğine başvurun.',
  answerIsAddress: 'Bu bir adres. İşlem kimliği gerekiyor: harf ve rakamlardan oluşan 64 karakter.',
  answerIsPart: {
    one: 'Bu, işlem kimliğinin yalnızca bir parçası: 64 karakterin {count} tanesi. Kimliğin tamamını kopyalayın.',
    other: 'Bu, işlem kimliğinin yalnızca bir parçası: 64 karakterin {count} tanesi. Kimliğin tamamını kopyalayın.',
  },
  answerIsLink:
    'Bu bağlantıyı okuyamıyoruz. İşlem kimliğinin kendisini yapıştırın: harf ve rakamlardan oluşan 64 karakter.',
  answerIsOther:
    'Bu bir işlem kimliği değil. İşlem kimliği, harf ve rakamlardan oluşan 64 karakterdir; cüzdanınız onu transferin ayrıntılarında gösterir.',
  answerUnavailable: 'Bu işlemi şu anda sorgulayamıyoruz. Ödemeniz güvende. {duration} sonra yeniden deneyin.',
  answerLimited: 'Kısa sürede çok fazla sorgu yapıldı. {duration} sonra yeniden deneyin.',

  // The receipt.
  receipt: 'Makbuz',
  receiptLink: 'Yazdırmak veya saklamak için makbuz',
  receiptPaidTo: 'Ödeme alıcısı',
  receiptFrom: 'Gönderen adres',
  receiptTo: 'Alıcı adres',
  receiptNetwork: 'Ağ',
  receiptSigned: 'İmzalı makbuz (JSON)',
  receiptProof:
    'Bu ödemeyi TRON ağında işlemi üzerinden herkes kontrol edebilir. İmzalı makbuz, ödemeyi bu hizmetin onayladığını kanıtlar.',
  backToPayment: 'Ödemeye dön',

  // Where there is nothing to show.
  notFound: 'Bu bağlantıda fatura yok',
  notFoundText: 'Bağlantıyı aldığınız yerden yeniden açın veya mağazadan yenisini isteyin.',
  notFoundPaid: 'Zaten ödediyseniz ödemeniz kaybolmadı: mağaza onu işlem kimliğiyle bulabilir.',
  unavailable: 'Bu sayfa şu anda gösterilemiyor',
  unavailableText: 'Lütfen bir dakika sonra sayfayı yenileyin.',
  unavailablePaid: 'Zaten ödediyseniz ödemeniz güvende ve bulunacak. **Tekrar göndermeyin.**',
};
