import { expect, test } from 'vitest';
import { clip, detectSecret, detectSecretInNote } from './problems.ts';

const WORDS = 'legal winner thank year wave sausage worth useful legal winner thank yellow';
const numbered = (mark: string) =>
  WORDS.split(' ')
    .map((word, index) => `${index + 1}${mark}${word}`)
    .join('\n');
const KEY = '4f'.repeat(32);
const SECRETS: readonly (readonly [string, string])[] = [
  ['a private key', '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ'],
  ['a private key', 'KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617'],
  ['a private key', Buffer.alloc(32, 0x4f).toString('base64')],
  ['a private key', '-----BEGIN EC PRIVATE KEY-----\nMHQC'],
  ['an encrypted private key', `6P${'R'.repeat(56)}`],
  ['an extended private key', `xprv9${'s'.repeat(106)}`],
  ['an extended private key', `zprv${'s'.repeat(107)}`],
  ['a wallet file', '{"version":3,"Crypto":{"cipher":"aes-128-ctr"}}'],
  ['a wallet file', ' {"mnemonic": "…"}'],
  ['an age secret key', `AGE-SECRET-KEY-1${'Q'.repeat(58)}`],
  ['a Quittance secret', 'qt_live_x'],
  ['a Quittance secret', 'whsec_x'],
  ['a seed phrase', WORDS],
  ['a seed phrase', `${WORDS} ${WORDS}`],
  ['a seed phrase', WORDS.toUpperCase()],
  ['a seed phrase', WORDS.replace('sausage', 'sasage')],
  ['a seed phrase', WORDS.replaceAll(' ', ', ')],
  ['a seed phrase', WORDS.replaceAll(' ', ';')],
  ['a seed phrase', JSON.stringify(WORDS.split(' '))],
  ['a seed phrase', numbered('. ')],
  ['a seed phrase', numbered(') ')],
  ['a seed phrase', numbered(': ')],
  ['a seed phrase', numbered('=')],
  ['a seed phrase', numbered(' = ')],
  ['a seed phrase', numbered(' ').replace(/^/gm, '#')],
  ['a seed phrase', WORDS.replaceAll(' ', ' → ')],
  ['a seed phrase', WORDS.replaceAll(' ', '+')],
  ['a seed phrase', `Cold wallet:\n${WORDS.replace(/(\S+ \S+ \S+) /g, '$1\n')}\n`],
  ['a seed phrase', 'ábaco abdomen abeja abierto abogado abono aborto abrazo abrir abuelo abuso acabar'],
  [
    'a seed phrase',
    'ábaco abdomen abeja abierto abogado abono aborto abrazo ébano águila último acabar'.normalize('NFD'),
  ],
  ['a seed phrase', '的 一 是 在 不 了 有 和 人 这 中 大'],
  ['a seed phrase', Array(12).fill('がんばる').join('\u3000').normalize('NFKD')],
  ['a seed phrase', Array(12).fill('가격').join(' ').normalize('NFKD')],
];

test.each(SECRETS)('spots %s, alone and beside other words', (kind, text) => {
  for (const each of [text, `old wallet: ${text}`, `${text} (old)`]) {
    expect(detectSecret(each)).toBe(kind);
    expect(detectSecretInNote(each)).toBe(kind);
    expect(clip(each)).toMatch(/^\(\d+ characters, not shown\)$/);
  }
});

test.each([
  'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
  '',
  '4f'.repeat(20),
  WORDS.replace(/ \w+$/, ''),
  'the customer paid twice by mistake and asked for the money, so we sent the second payment back to the same wallet',
  'customer paid twice second payment refunded manually after support ticket closed yesterday morning money back',
  'Customer wrote that exchange took withdrawal fee, will send missing amount tomorrow, please keep order open until then',
  'Kunde hat zweimal bezahlt und bittet um Rückzahlung der zweiten Zahlung, wir haben am Montag den Betrag überwiesen',
  'kunde hat per mail gesagt dass die zweite zahlung doppelt war bitte den betrag noch heute erstatten danke',
  'Клиент заплатил дважды, попросил вернуть второй платёж, мы вернули деньги на тот же кошелёк вчера вечером после звонка',
  'клиент оплатил заказ дважды просит вернуть второй платеж обратно деньги вернули сегодня утром после обеда звонок',
  'El cliente pagó dos veces por error y pidió que devolviéramos el segundo pago a la misma cartera de siempre',
  '客户付了两次款,第二笔已经退回到原来的钱包,已通过电子邮件告知客户并得到确认',
])('%j is no secret: notes in sentences are taken', (note) => {
  expect(detectSecretInNote(note)).toBeNull();
  expect(detectSecret(note)).toBeNull();
});

const TON_HASH = Buffer.alloc(32, 0x4f).toString('base64');

test.each([
  `refunded in tx ${KEY}`,
  `refund in transaction ${KEY}.`,
  `TXID: 0x${KEY}`,
  `tx_hash="${KEY}"`,
  `Transaktion ${KEY}`,
  `возврат, транзакция ${KEY}`,
  `退款交易 ${KEY}`,
  `for the customer in Turkey, tx ${KEY}`,
  `charge cleared by tx ${KEY}, and tx ${KEY}`,
  `tx ${TON_HASH} on TON`,
])('the note %j holds the id of a transaction', (note) => {
  expect(detectSecretInNote(note)).toBeNull();
  expect(detectSecret(note)).toBe('a private key');
});

test.each([
  KEY,
  `0x${KEY.toUpperCase()}`,
  `# ${KEY}`,
  `the key ${KEY}`,
  `refund wallet, private key ${KEY}`,
  `TRON_PRIVATE_KEY=${KEY}`,
  `PRIVATE_KEY_HASH=${KEY}`,
  `private: ${KEY}`,
  `wallet.txt: ${KEY}`,
  `refund wallet pk ${KEY}`,
  `refund of the tx that was late, wallet ${KEY}`,
  `tx ${KEY} ${KEY}`,
  `customer's key was wrong, tx ${KEY}`,
  `Schlüssel, tx ${KEY}`.normalize('NFD'),
  `clave de la cartera, tx ${KEY}`,
  `приватный ключ ${KEY}`,
  `私钥 ${KEY}`,
  `возврат ${KEY}`,
  `wallet ${TON_HASH}`,
])('the note %j holds a private key, for nothing calls it the id of a transaction', (note) => {
  expect(detectSecretInNote(note)).toBe('a private key');
});

test.each([
  `https://tronscan.org/#/transaction/${KEY}`,
  `see https://tronscan.org/#/transaction/${KEY}?lang=en for it`,
  `https://etherscan.io/tx/0x${KEY}`,
])('a link to a transaction is no secret: %s', (note) => {
  expect(detectSecretInNote(note)).toBeNull();
});
