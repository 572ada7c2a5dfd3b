import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Brazilian Portuguese. */
export const ptBr: Catalogue = {
  // The title of the window, in each state.
  titlePay: 'Pagar {amount} USDT para {merchant}',
  titleFound: 'Pagamento detectado: {merchant}',
  titlePaid: 'Pagamento concluído: {merchant}',
  titleReceipt: 'Comprovante: {merchant}',

  paymentTo: 'Pagamento para {merchant}',
  testNetwork: '**Pagamento de teste.** Esta é a rede de testes {network}: não envie dinheiro real.',

  // The states.
  waiting: 'Aguardando seu pagamento',
  expired: 'O prazo terminou, mas você ainda pode pagar',
  expiredText: 'Um pagamento exatamente neste valor ainda é válido. Se você já enviou, não precisa fazer mais nada.',
  found: 'Pagamento detectado',
  foundText: '**Não envie de novo.** Você pode fechar esta página.',
  paid: 'Pagamento concluído',
  paidText: 'Seu pagamento é definitivo. Você não precisa fazer mais nada.',
  gone: 'Aguardando seu pagamento reaparecer',
  goneText:
    'A rede substituiu o bloco em que estava seu pagamento. Isso acontece de vez em quando e, em geral, a transferência reaparece sozinha em alguns minutos. **Não envie de novo**, a menos que sua carteira indique que a transferência falhou.',
  goneShow: 'A transferência falhou? Mostrar como pagar',
  blindText:
    'No momento, não conseguimos ver a rede TRON. **Seu pagamento está seguro** e será detectado assim que voltarmos a vê-la.',

  // How to pay.
  sendExactly: 'Envie exatamente',
  network: 'Somente USDT na rede TRON (TRC-20)',
  allDigits:
    'Todos os dígitos contam: os últimos nos mostram que o pagamento é seu. Confira se a sua carteira mostra todos eles.',
  toAddress: 'Para este endereço',
  qrLabel: 'QR Code do endereço',
  qrHint:
    'O QR Code contém apenas o endereço; o valor precisa ser digitado. O dinheiro enviado por qualquer rede que não seja a TRON é perdido.',
  oneTransfer:
    '**Uma única transferência, exatamente neste valor.** Pagamentos em partes ou complementados depois não podem ser identificados.',
  neverHistory:
    'Nunca copie o endereço do histórico da sua carteira: golpistas fazem endereços parecidos aparecerem ali.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Pague até: {time}',
  timeLeft: 'Tempo restante: {duration}.',
  timeLeftAtOpening: 'Tempo restante quando esta página foi aberta: {duration}.',
  lessThanMinute: 'Resta menos de um minuto.',
  laterCounts: 'Se você pagar depois, o pagamento continua válido.',
  clockStands: 'O prazo de pagamento fica pausado até voltarmos a ver a rede.',
  timeEnded: 'Fim do prazo de pagamento: {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Detectado no bloco {block}. Será definitivo quando cerca de {required} produtores de blocos o confirmarem, normalmente em menos de um minuto.',
  built: '{built} de {required}',

  // Facts of the payment.
  amount: 'Valor',
  time: 'Data e hora',
  block: 'Bloco',
  transaction: 'Transação',
  secondPayment:
    'Chegou um segundo pagamento do mesmo valor: {transaction}. Fale com {merchant} para recebê-lo de volta.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Copiar',
  copied: 'Copiado',
  selected: 'Selecionado',
  copyAmount: 'Copiar o valor',
  copyAddress: 'Copiar o endereço',
  copiedText: 'Copiado: {text}',
  notCopied: 'Não foi possível copiar. O texto está selecionado: copie manualmente.',
  checkNow: 'Verificar agora',
  updatesItself: 'Esta página é atualizada automaticamente.',
  noConnection: 'Sem conexão. Tentando novamente…',
  returnTo: 'Voltar para {merchant}',
  support: 'Dúvidas? Fale com {merchant}: {contact}',
  changeLanguage: 'Idioma',
  print: 'Imprimir',

  // Wallets.
  wallets: 'Abrir em uma carteira',
  openTronLink: 'Abrir esta página na TronLink',
  openTrust: 'Pagar com a Trust Wallet',
  walletsHint: 'Antes de confirmar, compare o valor e o endereço mostrados na carteira com os desta página.',
  payHere: 'Pagar com esta carteira',
  walletWait: 'Confirme a transferência na sua carteira.',
  walletSent: 'Enviado. **Não envie de novo.** Esta página mostrará o pagamento assim que ele estiver na rede.',
  walletRefused: 'A carteira não enviou a transferência. Nada foi pago.',
  walletUnknown:
    'Não sabemos se a carteira enviou a transferência. Consulte o histórico da sua carteira antes de tentar de novo.',
  walletOtherNetwork: 'Esta carteira está em outra rede. Mude para {network}.',

  // The exchange's fee.
  feeTitle: 'Vai pagar por uma exchange?',
  feeText:
    'Muitas exchanges descontam a taxa do valor, e chega uma quantia menor. Digite a taxa e mostraremos o valor a informar para que cheguem exatamente {amount} USDT.',
  feeLabel: 'Taxa da exchange em USDT',
  feeButton: 'Calcular',
  feeResult: 'Digite {total} USDT na exchange: descontada a taxa de {fee}, chegarão exatamente {amount}.',
  feeCheck: 'Confira na exchange o valor que vai chegar. Se ela permitir digitar esse valor, digite {amount}.',
  feeInvalid: 'Digite a taxa como um número com no máximo 6 casas decimais, por exemplo 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Confira o endereço que você copiou',
  pasteText:
    'Alguns programas maliciosos trocam endereços durante a cópia. Cole aqui o endereço para o qual você vai enviar o dinheiro.',
  pasteLabel: 'O endereço copiado',
  pasteButton: 'Comparar',
  pasteSame: 'É o mesmo endereço.',
  pasteOther: '**É outro endereço. Não envie para ele.** Copie o endereço desta página novamente e confira outra vez.',
  pasteNoAddress: 'Isto não é um endereço da TRON. Copie o endereço desta página novamente.',

  // Finding a payment by its transaction.
  findTitle: 'Já paguei, mas esta página não mostra',
  findOther: 'Consultar outra transação',
  findText:
    'Cole o ID da transação (TxID) ou o link do Tronscan que aparece na sua carteira ou exchange. Uma transferência dentro de uma exchange não gera uma transação na TRON e não chega até nós.',
  findLabel: 'ID da transação ou link do Tronscan',
  findButton: 'Buscar',
  searching: 'Buscando…',
  answerTitle: 'O que sabemos desta transação',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Esta transação pagou esta cobrança.** {amount} USDT no bloco {block}, pagamento definitivo. Você não precisa fazer mais nada.',
  answerConfirming:
    '**É o seu pagamento.** {amount} USDT no bloco {block}: {built} de {required} confirmações. Não envie de novo.',
  answerSecond:
    'O endereço e o valor estão corretos, mas é um segundo pagamento: outro chegou antes, e este não será contado. Fale com {merchant} para receber o dinheiro de volta. A primeira transação: {transaction}',
  answerAlreadyPaid:
    'O endereço e o valor estão corretos, mas esta cobrança já estava paga. Fale com {merchant} para receber o dinheiro de volta. A transação que vale: {transaction}',
  answerAlreadyPaidOther:
    'O endereço e o valor estão corretos, mas esta cobrança já estava paga. Fale com {merchant} para receber o dinheiro de volta.',
  answerNotExamined:
    '**O endereço e o valor estão corretos.** Ainda não lemos o bloco {block}, que contém esta transação; o pagamento será contado em um ou dois minutos. Não envie de novo.',
  answerNotConfirmed:
    'O endereço e o valor parecem corretos, mas ainda são poucos os nós da rede que nos mostraram esta transação. Não envie de novo; consulte novamente em {duration}.',
  answerNotRecorded:
    'O endereço e o valor parecem corretos, mas esta transação não está nos nossos registros. Não envie de novo: informe este ID da transação a {merchant}.',
  answerBeforeInvoice:
    'A transação foi enviada antes de esta cobrança ser criada, então não pode pagá-la. Envio: {time}. Criação da cobrança: {created}. Fale com {merchant}.',
  answerShort:
    'A transação foi enviada para o endereço correto, mas chegaram {arrived} USDT em vez de {expected}: {by} a menos. O pagamento não pode ser associado automaticamente a esta cobrança. **Não envie o restante**; fale com {merchant}.',
  answerOver:
    'A transação foi enviada para o endereço correto, mas chegaram {arrived} USDT em vez de {expected}: {by} a mais. O pagamento não pode ser associado automaticamente a esta cobrança. **Não envie de novo**; fale com {merchant}.',
  likelyRequested: 'É o preço sem os últimos dígitos, que identificam este pagamento como seu.',
  likelyFee: 'A diferença parece ser uma taxa descontada do valor.',
  likelyFeeAdded: 'Parece que uma taxa foi somada ao valor e depois não foi descontada.',
  likelyRounded: {
    one: 'Parece que o valor foi arredondado para {count} casa decimal.',
    many: 'Parece que o valor foi arredondado para {count} casas decimais.',
    other: 'Parece que o valor foi arredondado para {count} casas decimais.',
  },
  likelyTruncated: {
    one: 'Parece que o valor foi cortado após {count} casa decimal.',
    many: 'Parece que o valor foi cortado após {count} casas decimais.',
    other: 'Parece que o valor foi cortado após {count} casas decimais.',
  },
  likelyDigit: 'Um dígito é diferente: parece um erro de digitação.',
  likelySwapped: 'Parece que dois dígitos vizinhos foram trocados.',
  answerOtherAddress:
    'Foram enviados {amount} USDT para outro endereço: {to}. Se {merchant} passou esse endereço a você, fale com {merchant} e informe o ID desta transação. Caso contrário, só o dono do endereço pode devolver o dinheiro.',
  answerOtherToken:
    'Esta transação transferiu outro token, não USDT, mesmo que ele use esse nome (contrato {contract}). Ela não pode pagar esta cobrança. Fale com {merchant}.',
  answerFailed: 'A transação falhou na rede: **nada foi pago com ela**.',
  failedMaySend: 'Se você não fez outro envio, pode enviar de novo.',
  failedNotFinal: 'Isso ainda não é definitivo. Não envie de novo; consulte novamente em {duration}.',
  failedOtherFound: 'Outro pagamento foi detectado. **Não envie de novo.**',
  failedEnergy: 'A carteira não tinha energia ou TRX suficientes para a taxa de rede: ela precisa de mais TRX.',
  failedTime: 'A rede ficou sem tempo para executá-la.',
  failedReverted: 'O contrato do token a recusou: talvez a carteira não tivesse USDT suficiente.',
  failedOther: 'A rede informa: {result}.',
  answerTrxHere:
    'Esta transação enviou {amount} TRX para o endereço correto, mas TRX não é USDT, então ela não pode pagar esta cobrança. Fale com {merchant}.',
  answerTrxElsewhere:
    'Esta transação enviou {amount} TRX para outro endereço, e nenhum USDT. Ela não pode pagar esta cobrança.',
  answerOtherMoved: 'Esta transação transferiu outro token e nenhum USDT. Ela não pode pagar esta cobrança.',
  answerNothingMoved: 'Esta transação não transferiu USDT. Ela não pode pagar esta cobrança.',
  stillWaits: 'Esta cobrança ainda aguarda o pagamento.',
  answerNotFound:
    'A rede TRON ainda não conhece esta transação. Se você acabou de enviá-la, consulte novamente em {duration}. Se a sua exchange a mostra como interna ou off-chain, ela não está na TRON e não chega até nós: fale com {merchant}.',
  answerNotTron:
    'Esta é uma transação da rede {chain}, não da TRON. Um pagamento por outra rede não chega até nós. Fale com o suporte da carteira ou da exchange pela qual você enviou.',
  answerIsAddress: 'Isto é um endereço. Precisamos do ID da transação: 64 letras e números.',
  answerIsPart: {
    one: 'Isto é só uma parte de um ID de transação: {count} caractere de 64. Copie o ID completo.',
    many: 'Isto é só uma parte de um ID de transação: {count} caracteres de 64. Copie o ID completo.',
    other: 'Isto é só uma parte de um ID de transação: {count} caracteres de 64. Copie o ID completo.',
  },
  answerIsLink: 'Não conseguimos ler este link. Cole o próprio ID da transação: 64 letras e números.',
  answerIsOther:
    'Isto não é um ID de transação. O ID tem 64 letras e números, e sua carteira o mostra junto com a transferência.',
  answerUnavailable:
    'No momento, não conseguimos consultar a transação. Seu pagamento está seguro. Tente novamente em {duration}.',
  answerLimited: 'Houve várias consultas seguidas. Tente novamente em {duration}.',

  // The receipt.
  receipt: 'Comprovante',
  receiptLink: 'Comprovante para imprimir ou guardar',
  receiptPaidTo: 'Pago para',
  receiptFrom: 'De',
  receiptTo: 'Para',
  receiptNetwork: 'Rede',
  receiptSigned: 'Comprovante assinado (JSON)',
  receiptProof:
    'Qualquer pessoa pode verificar este pagamento na rede TRON pela transação. O comprovante assinado prova que este serviço o confirmou.',
  backToPayment: 'Voltar ao pagamento',

  // Where there is nothing to show.
  notFound: 'Não há nenhuma cobrança neste link',
  notFoundText: 'Abra o link novamente de onde você o recebeu ou peça um novo à loja.',
  notFoundPaid: 'Se você já pagou, seu pagamento não está perdido: a loja pode encontrá-lo pelo ID da transação.',
  unavailable: 'Não é possível mostrar esta página no momento',
  unavailableText: 'Recarregue a página em um minuto.',
  unavailablePaid: 'Se você já pagou, seu pagamento está seguro e será detectado. **Não envie de novo.**',
};
