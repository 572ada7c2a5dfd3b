import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Indonesian. */
export const id: Catalogue = {
  // The title of the window, in each state.
  titlePay: 'Bayar {amount} USDT kepada {merchant}',
  titleFound: 'Pembayaran ditemukan: {merchant}',
  titlePaid: 'Lunas: {merchant}',
  titleReceipt: 'Bukti pembayaran: {merchant}',

  paymentTo: 'Pembayaran kepada {merchant}',
  testNetwork: '**Pembayaran uji coba.** Ini jaringan uji coba {network}: jangan kirim uang sungguhan.',

  // The states.
  waiting: 'Menunggu pembayaran Anda',
  expired: 'Waktu sudah habis, tetapi Anda masih bisa membayar',
  expiredText:
    'Pembayaran dengan jumlah yang persis sama tetap diterima. Jika Anda sudah mengirimnya, tidak ada lagi yang perlu dilakukan.',
  found: 'Pembayaran ditemukan',
  foundText: '**Jangan kirim lagi.** Anda boleh menutup halaman ini.',
  paid: 'Lunas',
  paidText: 'Pembayaran Anda sudah final. Tidak ada lagi yang perlu dilakukan.',
  gone: 'Menunggu pembayaran Anda muncul kembali',
  goneText:
    'Jaringan telah mengganti blok yang memuat pembayaran Anda. Hal ini sesekali terjadi, dan transfer Anda biasanya muncul kembali dengan sendirinya dalam beberapa menit. **Jangan kirim lagi** kecuali dompet Anda menyatakan bahwa transfer gagal.',
  goneShow: 'Transfer gagal? Tampilkan cara membayar',
  blindText:
    'Saat ini kami tidak dapat melihat jaringan TRON. **Pembayaran Anda aman** dan akan ditemukan segera setelah jaringan terlihat kembali.',

  // How to pay.
  sendExactly: 'Kirim persis sejumlah ini',
  network: 'Hanya USDT di jaringan TRON (TRC-20)',
  allDigits:
    'Semua digit penting: digit-digit terakhir menandai bahwa pembayaran ini milik Anda. Pastikan dompet Anda menampilkan semuanya.',
  toAddress: 'Ke alamat ini',
  qrLabel: 'Kode QR alamat',
  qrHint:
    'Kode QR hanya berisi alamat; ketik sendiri jumlahnya. Uang yang dikirim melalui jaringan selain TRON akan hilang.',
  oneTransfer:
    '**Hanya satu kali transfer, persis sejumlah ini.** Pembayaran bertahap atau susulan tidak dapat dicocokkan.',
  neverHistory:
    'Jangan pernah menyalin alamat dari riwayat dompet: penipu menyisipkan alamat palsu yang mirip di sana.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Bayar sebelum {time}',
  timeLeft: 'Sisa waktu: {duration}.',
  timeLeftAtOpening: 'Sisa waktu saat halaman ini dibuka: {duration}.',
  lessThanMinute: 'Sisa waktu kurang dari satu menit.',
  laterCounts: 'Pembayaran yang terlambat tetap diterima.',
  clockStands: 'Hitungan waktu pembayaran dihentikan sementara sampai kami dapat melihat jaringan kembali.',
  timeEnded: 'Waktu pembayaran berakhir: {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Ditemukan di blok {block}. Pembayaran menjadi final setelah dikonfirmasi oleh sekitar {required} produsen blok, biasanya dalam waktu satu menit.',
  built: '{built} dari {required}',

  // Facts of the payment.
  amount: 'Jumlah',
  time: 'Waktu',
  block: 'Blok',
  transaction: 'Transaksi',
  secondPayment:
    'Pembayaran kedua dengan jumlah yang sama diterima: {transaction}. Hubungi {merchant} untuk mendapatkannya kembali.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Salin',
  copied: 'Tersalin',
  selected: 'Terpilih',
  copyAmount: 'Salin jumlah',
  copyAddress: 'Salin alamat',
  copiedText: 'Tersalin: {text}',
  notCopied: 'Tidak tersalin. Teks sudah dipilih: salin secara manual.',
  checkNow: 'Periksa sekarang',
  updatesItself: 'Halaman ini diperbarui otomatis.',
  noConnection: 'Tidak ada koneksi. Mencoba lagi…',
  returnTo: 'Kembali ke {merchant}',
  support: 'Ada pertanyaan? Hubungi {merchant}: {contact}',
  changeLanguage: 'Bahasa',
  print: 'Cetak',

  // Wallets.
  wallets: 'Buka di dompet',
  openTronLink: 'Buka halaman ini di TronLink',
  openTrust: 'Bayar dengan Trust Wallet',
  walletsHint: 'Sebelum mengonfirmasi, cocokkan jumlah dan alamat yang tampil di dompet dengan halaman ini.',
  payHere: 'Bayar dengan dompet ini',
  walletWait: 'Konfirmasikan transfer di dompet Anda.',
  walletSent:
    'Terkirim. **Jangan kirim lagi.** Halaman ini menampilkan pembayaran segera setelah diterima oleh jaringan.',
  walletRefused: 'Dompet tidak mengirim transfer ini. Tidak ada uang yang dibayarkan.',
  walletUnknown:
    'Kami tidak tahu apakah dompet sudah mengirim transfer ini. Lihat riwayat dompet Anda sebelum mencoba lagi.',
  walletOtherNetwork: 'Dompet ini berada di jaringan lain. Alihkan ke {network}.',

  // The exchange's fee.
  feeTitle: 'Membayar dari exchange?',
  feeText:
    'Banyak exchange memotong biaya dari jumlah yang dikirim sehingga jumlah yang diterima berkurang. Masukkan biayanya, dan kami akan menunjukkan jumlah yang perlu diketik agar yang diterima tepat {amount} USDT.',
  feeLabel: 'Biaya exchange dalam USDT',
  feeButton: 'Hitung',
  feeResult: 'Ketik {total} USDT di exchange: setelah dipotong biaya {fee}, jumlah yang diterima tepat {amount}.',
  feeCheck:
    'Periksa jumlah yang akan diterima menurut exchange. Jika exchange menyediakan kolom untuk jumlah yang diterima, masukkan {amount} di sana.',
  feeInvalid: 'Masukkan biaya berupa angka dengan paling banyak 6 angka desimal, misalnya 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Periksa alamat yang Anda salin',
  pasteText: 'Ada malware yang mengubah alamat saat disalin. Tempelkan di sini alamat tujuan pengiriman Anda.',
  pasteLabel: 'Alamat yang disalin',
  pasteButton: 'Bandingkan',
  pasteSame: 'Alamatnya sama.',
  pasteOther:
    '**Ini alamat yang berbeda. Jangan kirim ke alamat itu.** Salin lagi alamat dari halaman ini, lalu periksa kembali.',
  pasteNoAddress: 'Ini bukan alamat TRON. Salin lagi alamat dari halaman ini.',

  // Finding a payment by its transaction.
  findTitle: 'Saya sudah membayar, tetapi tidak tampil di halaman ini',
  findOther: 'Cari transaksi lain',
  findText:
    'Tempelkan ID transaksi (TxID) atau tautan Tronscan dari dompet atau exchange Anda. Transfer internal di dalam exchange tidak memiliki transaksi TRON dan tidak dapat sampai kepada kami.',
  findLabel: 'ID transaksi (TxID) atau tautan Tronscan',
  findButton: 'Cari',
  searching: 'Mencari…',
  answerTitle: 'Yang kami ketahui tentang transaksi ini',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Transaksi ini telah melunasi tagihan ini.** {amount} USDT di blok {block}, sudah final. Tidak ada lagi yang perlu dilakukan.',
  answerConfirming:
    '**Ini pembayaran Anda.** {amount} USDT di blok {block}: {built} dari {required} konfirmasi. Jangan kirim lagi.',
  answerSecond:
    'Transaksi ini sudah tepat, tetapi merupakan pembayaran kedua: ada transaksi lain yang lebih dulu, sehingga yang ini tidak akan diperhitungkan. Hubungi {merchant} untuk mendapatkan uang Anda kembali. Transaksi pertama: {transaction}',
  answerAlreadyPaid:
    'Transaksi ini sudah tepat, tetapi tagihan ini sudah dibayar sebelumnya. Hubungi {merchant} untuk mendapatkan uang Anda kembali. Pembayaran yang diperhitungkan: {transaction}',
  answerAlreadyPaidOther:
    'Transaksi ini sudah tepat, tetapi tagihan ini sudah dibayar sebelumnya. Hubungi {merchant} untuk mendapatkan uang Anda kembali.',
  answerNotExamined:
    '**Transaksi ini sudah tepat.** Kami belum membaca bloknya, yaitu {block}; transaksi akan diperhitungkan dalam satu atau dua menit. Jangan kirim lagi.',
  answerNotConfirmed:
    'Transaksi ini tampaknya sudah tepat, tetapi belum cukup banyak node jaringan yang menunjukkannya kepada kami. Jangan kirim lagi; periksa lagi setelah {duration}.',
  answerNotRecorded:
    'Transaksi ini tampaknya sudah tepat, tetapi tidak ada dalam catatan kami. Jangan kirim lagi: berikan ID transaksi ini kepada {merchant}.',
  answerBeforeInvoice:
    'Transaksi ini dikirim pada {time}, sebelum tagihan ini dibuat pada {created}, sehingga tidak dapat melunasinya. Hubungi {merchant}.',
  answerShort:
    'Transaksi ini dikirim ke alamat yang benar, tetapi jumlah yang diterima {arrived} USDT: {by} lebih sedikit daripada {expected}. Transaksi tidak dapat dicocokkan secara otomatis. **Jangan kirim kekurangannya**; hubungi {merchant}.',
  answerOver:
    'Transaksi ini dikirim ke alamat yang benar, tetapi jumlah yang diterima {arrived} USDT: {by} lebih banyak daripada {expected}. Transaksi tidak dapat dicocokkan secara otomatis. **Jangan kirim lagi**; hubungi {merchant}.',
  likelyRequested: 'Ini harga tanpa digit-digit terakhir yang menandai pembayaran Anda.',
  likelyFee: 'Selisihnya tampak seperti biaya yang dipotong dari jumlah yang dikirim.',
  likelyFeeAdded: 'Tampaknya biaya ditambahkan ke jumlah, tetapi kemudian tidak dipotong.',
  likelyRounded: {
    other: 'Jumlahnya tampaknya dibulatkan menjadi {count} angka desimal.',
  },
  likelyTruncated: {
    other: 'Jumlahnya tampaknya terpotong setelah {count} angka desimal.',
  },
  likelyDigit: 'Satu digit berbeda: tampaknya salah ketik.',
  likelySwapped: 'Dua digit yang berdampingan tampaknya tertukar.',
  answerOtherAddress:
    '{amount} USDT dikirim ke alamat lain: {to}. Jika {merchant} memberi Anda alamat itu, hubungi {merchant} dengan ID transaksi ini. Jika tidak, hanya pemilik alamat itu yang dapat mengembalikan uangnya.',
  answerOtherToken:
    'Transaksi ini memindahkan token lain, bukan USDT, apa pun nama token itu (kontrak {contract}). Transaksi ini tidak dapat melunasi tagihan ini. Hubungi {merchant}.',
  answerFailed: 'Transaksi ini gagal di jaringan: **tidak ada yang dibayarkan olehnya**.',
  failedMaySend: 'Jika Anda belum mengirim transfer lain, Anda boleh mengirim lagi.',
  failedNotFinal: 'Ini belum final. Jangan kirim lagi; periksa lagi setelah {duration}.',
  failedOtherFound: 'Pembayaran lain ditemukan. **Jangan kirim lagi.**',
  failedEnergy: 'Energi atau TRX di dompet tidak cukup untuk membayar biaya jaringan: tambahkan TRX.',
  failedTime: 'Jaringan kehabisan waktu untuk memproses transaksi ini.',
  failedReverted: 'Kontrak token menolak transaksi ini: mungkin USDT di dompet tidak cukup.',
  failedOther: 'Keterangan dari jaringan: {result}.',
  answerTrxHere:
    'Transaksi ini mengirim {amount} TRX ke alamat yang benar, tetapi TRX bukan USDT, sehingga tidak dapat melunasi tagihan ini. Hubungi {merchant}.',
  answerTrxElsewhere:
    'Transaksi ini mengirim {amount} TRX ke alamat lain, dan tidak mengirim USDT. Transaksi ini tidak dapat melunasi tagihan ini.',
  answerOtherMoved:
    'Transaksi ini memindahkan token lain, dan tidak memindahkan USDT. Transaksi ini tidak dapat melunasi tagihan ini.',
  answerNothingMoved: 'Transaksi ini tidak memindahkan USDT. Transaksi ini tidak dapat melunasi tagihan ini.',
  stillWaits: 'Tagihan ini masih menunggu pembayaran.',
  answerNotFound:
    'Transaksi ini belum terlihat di jaringan TRON. Jika Anda baru saja mengirimnya, periksa lagi setelah {duration}. Jika exchange Anda menandainya sebagai internal atau off-chain, transaksi itu tidak ada di TRON dan tidak dapat sampai kepada kami: hubungi {merchant}.',
  answerNotTron:
    'Ini transaksi {chain}, bukan transaksi TRON. Pembayaran di jaringan lain tidak sampai kepada kami. Hubungi penyedia dompet atau exchange yang Anda gunakan untuk mengirim.',
  answerIsAddress: 'Ini sebuah alamat. Kami memerlukan ID transaksi: 64 huruf dan angka.',
  answerIsPart: {
    other: 'Ini hanya sebagian dari ID transaksi: {count} dari 64 karakter. Salin ID selengkapnya.',
  },
  answerIsLink: 'Kami tidak dapat membaca tautan ini. Tempelkan ID transaksinya langsung: 64 huruf dan angka.',
  answerIsOther:
    'Ini bukan ID transaksi. ID transaksi terdiri dari 64 huruf dan angka, dan ditampilkan dompet Anda bersama transfernya.',
  answerUnavailable: 'Saat ini kami tidak dapat mencarinya. Pembayaran Anda aman. Coba lagi setelah {duration}.',
  answerLimited: 'Jeda antarpencarian terlalu singkat. Coba lagi setelah {duration}.',

  // The receipt.
  receipt: 'Bukti pembayaran',
  receiptLink: 'Bukti pembayaran untuk dicetak atau disimpan',
  receiptPaidTo: 'Dibayarkan kepada',
  receiptFrom: 'Dari',
  receiptTo: 'Ke',
  receiptNetwork: 'Jaringan',
  receiptSigned: 'Bukti bertanda tangan digital (JSON)',
  receiptProof:
    'Siapa pun dapat memeriksa pembayaran ini di jaringan TRON melalui transaksinya. Bukti bertanda tangan digital membuktikan bahwa layanan ini telah mengonfirmasinya.',
  backToPayment: 'Kembali ke pembayaran',

  // Where there is nothing to show.
  notFound: 'Tidak ada tagihan di tautan ini',
  notFoundText: 'Buka kembali tautan dari tempat Anda memperolehnya, atau mintalah tautan baru kepada toko.',
  notFoundPaid: 'Jika Anda sudah membayar, pembayaran Anda tidak hilang: toko dapat menemukannya dengan ID transaksi.',
  unavailable: 'Halaman ini tidak dapat ditampilkan saat ini',
  unavailableText: 'Silakan muat ulang satu menit lagi.',
  unavailablePaid: 'Jika Anda sudah membayar, pembayaran Anda aman dan akan ditemukan. **Jangan kirim lagi.**',
};
