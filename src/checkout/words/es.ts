import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in Spanish. */
export const es: Catalogue = {
  // The title of the window, in each state.
  titlePay: 'Pagar {amount} USDT a {merchant}',
  titleFound: 'Pago detectado: {merchant}',
  titlePaid: 'Pagado: {merchant}',
  titleReceipt: 'Recibo: {merchant}',

  paymentTo: 'Pago a {merchant}',
  testNetwork: '**Pago de prueba.** Esta es la red de pruebas {network}: no envíe dinero real.',

  // The states.
  waiting: 'En espera de su pago',
  expired: 'El plazo terminó, pero todavía puede pagar',
  expiredText: 'Un pago por este importe exacto sigue siendo válido. Si ya lo envió, no tiene que hacer nada más.',
  found: 'Pago detectado',
  foundText: '**No vuelva a enviar el pago.** Puede cerrar esta página.',
  paid: 'Pagado',
  paidText: 'Su pago es definitivo. No tiene que hacer nada más.',
  gone: 'En espera de que su pago reaparezca',
  goneText:
    'La red reemplazó el bloque en el que estaba su pago. Sucede de vez en cuando y, por lo general, la transferencia vuelve a aparecer sola en unos minutos. **No vuelva a enviar el pago**, salvo que su billetera indique que la transferencia falló.',
  goneShow: '¿Falló la transferencia? Mostrar cómo pagar',
  blindText:
    'En este momento no podemos ver la red TRON. **Su pago está a salvo** y lo detectaremos en cuanto volvamos a verla.',

  // How to pay.
  sendExactly: 'Envíe exactamente',
  network: 'Solo USDT en la red TRON (TRC-20)',
  allDigits:
    'Todos los dígitos cuentan: por los últimos sabemos que el pago es suyo. Verifique que su billetera los muestre todos.',
  toAddress: 'A esta dirección',
  qrLabel: 'Código QR de la dirección',
  qrHint:
    'El código QR contiene solo la dirección; el importe debe escribirlo usted. El dinero enviado por una red distinta de TRON se pierde.',
  oneTransfer:
    '**Una sola transferencia, exactamente por este importe.** Los pagos en partes o completados después no se pueden identificar.',
  neverHistory:
    'Nunca copie la dirección del historial de su billetera: los estafadores hacen aparecer ahí direcciones parecidas.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'Pague antes de: {time}',
  timeLeft: 'Tiempo restante: {duration}.',
  timeLeftAtOpening: 'Tiempo restante al abrir esta página: {duration}.',
  lessThanMinute: 'Queda menos de un minuto.',
  laterCounts: 'Si paga más tarde, el pago sigue siendo válido.',
  clockStands: 'El plazo de pago queda en pausa hasta que volvamos a ver la red.',
  timeEnded: 'Fin del plazo de pago: {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Detectado en el bloque {block}. Será definitivo cuando lo hayan confirmado unos {required} productores de bloques, normalmente en menos de un minuto.',
  built: '{built} de {required}',

  // Facts of the payment.
  amount: 'Importe',
  time: 'Fecha y hora',
  block: 'Bloque',
  transaction: 'Transacción',
  secondPayment:
    'Llegó un segundo pago por el mismo importe: {transaction}. Póngase en contacto con {merchant} para recuperarlo.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Copiar',
  copied: 'Copiado',
  selected: 'Seleccionado',
  copyAmount: 'Copiar el importe',
  copyAddress: 'Copiar la dirección',
  copiedText: 'Copiado: {text}',
  notCopied: 'No se pudo copiar. El texto está seleccionado: cópielo manualmente.',
  checkNow: 'Comprobar ahora',
  updatesItself: 'Esta página se actualiza sola.',
  noConnection: 'Sin conexión. Reintentando…',
  returnTo: 'Volver a {merchant}',
  support: '¿Tiene preguntas? Contacto de {merchant}: {contact}',
  changeLanguage: 'Idioma',
  print: 'Imprimir',

  // Wallets.
  wallets: 'Abrir en una billetera',
  openTronLink: 'Abrir esta página en TronLink',
  openTrust: 'Pagar con Trust Wallet',
  walletsHint: 'Antes de confirmar, compare el importe y la dirección que muestra la billetera con los de esta página.',
  payHere: 'Pagar con esta billetera',
  walletWait: 'Confirme la transferencia en su billetera.',
  walletSent: 'Enviado. **No vuelva a enviar el pago.** Esta página lo mostrará en cuanto esté en la red.',
  walletRefused: 'La billetera no envió la transferencia. No se pagó nada.',
  walletUnknown:
    'No sabemos si la billetera envió la transferencia. Revise el historial de su billetera antes de intentarlo de nuevo.',
  walletOtherNetwork: 'Esta billetera está en otra red. Cámbiela a {network}.',

  // The exchange's fee.
  feeTitle: '¿Paga desde un exchange?',
  feeText:
    'Muchos exchanges descuentan su comisión del importe, por lo que llega menos. Escriba la comisión y le diremos qué importe indicar para que lleguen exactamente {amount} USDT.',
  feeLabel: 'Comisión del exchange en USDT',
  feeButton: 'Calcular',
  feeResult:
    'Escriba {total} USDT en el exchange: una vez descontada su comisión de {fee}, llegarán exactamente {amount}.',
  feeCheck:
    'Verifique qué importe llegará según el exchange. Si le permite escribir el importe que se recibirá, escriba {amount}.',
  feeInvalid: 'Escriba la comisión como un número con 6 decimales como máximo, por ejemplo 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Verifique la dirección que copió',
  pasteText:
    'Algunos programas maliciosos cambian las direcciones al copiarlas. Pegue aquí la dirección a la que va a enviar el dinero.',
  pasteLabel: 'La dirección copiada',
  pasteButton: 'Comparar',
  pasteSame: 'Es la misma dirección.',
  pasteOther:
    '**Es otra dirección. No envíe nada a ella.** Copie de nuevo la dirección desde esta página y vuelva a verificarla.',
  pasteNoAddress: 'Esto no es una dirección de TRON. Copie de nuevo la dirección desde esta página.',

  // Finding a payment by its transaction.
  findTitle: 'Ya pagué, pero esta página no lo muestra',
  findOther: 'Consultar otra transacción',
  findText:
    'Pegue el ID de la transacción (TxID) o el enlace de Tronscan de su billetera o exchange. Una transferencia dentro de un exchange no genera ninguna transacción en TRON y no puede llegarnos.',
  findLabel: 'ID de la transacción o enlace de Tronscan',
  findButton: 'Buscar',
  searching: 'Buscando…',
  answerTitle: 'Lo que sabemos de esta transacción',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Esta transacción pagó esta factura.** {amount} USDT en el bloque {block}, pago definitivo. No tiene que hacer nada más.',
  answerConfirming:
    '**Es su pago.** {amount} USDT en el bloque {block}: {built} de {required} confirmaciones. No vuelva a enviar el pago.',
  answerSecond:
    'La dirección y el importe son correctos, pero es un segundo pago: otro llegó antes, así que este no contará. Póngase en contacto con {merchant} para recuperar el dinero. La primera transacción: {transaction}',
  answerAlreadyPaid:
    'La dirección y el importe son correctos, pero esta factura ya estaba pagada. Póngase en contacto con {merchant} para recuperar el dinero. La transacción que cuenta: {transaction}',
  answerAlreadyPaidOther:
    'La dirección y el importe son correctos, pero esta factura ya estaba pagada. Póngase en contacto con {merchant} para recuperar el dinero.',
  answerNotExamined:
    '**La dirección y el importe son correctos.** Todavía no hemos leído el bloque {block}, que contiene esta transacción; el pago contará en uno o dos minutos. No vuelva a enviar el pago.',
  answerNotConfirmed:
    'La dirección y el importe parecen correctos, pero aún son pocos los nodos de la red que nos han mostrado esta transacción. No vuelva a enviar el pago; consulte de nuevo en {duration}.',
  answerNotRecorded:
    'La dirección y el importe parecen correctos, pero esta transacción no figura en nuestros registros. No vuelva a enviar el pago: comunique este ID de transacción a {merchant}.',
  answerBeforeInvoice:
    'Se envió antes de que se creara esta factura, así que no puede pagarla. Envío: {time}. Creación de la factura: {created}. Póngase en contacto con {merchant}.',
  answerShort:
    'Se envió a la dirección correcta, pero llegaron {arrived} USDT en lugar de {expected}: {by} menos. El pago no se puede asociar automáticamente a esta factura. **No envíe el resto**; póngase en contacto con {merchant}.',
  answerOver:
    'Se envió a la dirección correcta, pero llegaron {arrived} USDT en lugar de {expected}: {by} más. El pago no se puede asociar automáticamente a esta factura. **No vuelva a enviar el pago**; póngase en contacto con {merchant}.',
  likelyRequested: 'Es el precio sin los últimos dígitos, que identifican este pago como suyo.',
  likelyFee: 'La diferencia parece una comisión descontada del importe.',
  likelyFeeAdded: 'Parece que se añadió una comisión al importe y después no se descontó.',
  likelyRounded: {
    one: 'Parece que el importe se redondeó a {count} decimal.',
    many: 'Parece que el importe se redondeó a {count} decimales.',
    other: 'Parece que el importe se redondeó a {count} decimales.',
  },
  likelyTruncated: {
    one: 'Parece que el importe se cortó después de {count} decimal.',
    many: 'Parece que el importe se cortó después de {count} decimales.',
    other: 'Parece que el importe se cortó después de {count} decimales.',
  },
  likelyDigit: 'Hay un dígito distinto: parece un error de escritura.',
  likelySwapped: 'Parece que se intercambiaron dos dígitos contiguos.',
  answerOtherAddress:
    'Se enviaron {amount} USDT a otra dirección: {to}. Si {merchant} le dio esa dirección, póngase en contacto con {merchant} e indique el ID de esta transacción. De lo contrario, solo su titular puede devolver el dinero.',
  answerOtherToken:
    'Esta transacción transfirió otro token, no USDT, aunque el token use ese nombre (contrato {contract}). No puede pagar esta factura. Póngase en contacto con {merchant}.',
  answerFailed: 'La transacción falló en la red: **con ella no se pagó nada**.',
  failedMaySend: 'Si no ha enviado otro pago, puede repetir el envío.',
  failedNotFinal: 'Esto aún no es definitivo. No vuelva a enviar el pago; consulte de nuevo en {duration}.',
  failedOtherFound: 'Se detectó otro pago. **No vuelva a enviar el pago.**',
  failedEnergy: 'La billetera no tenía suficiente energía o TRX para la comisión de red: necesita más TRX.',
  failedTime: 'La red se quedó sin tiempo para ejecutarla.',
  failedReverted: 'El contrato del token la rechazó: quizá la billetera no tenía suficiente USDT.',
  failedOther: 'La red indica: {result}.',
  answerTrxHere:
    'Esta transacción envió {amount} TRX a la dirección correcta, pero TRX no es USDT, así que no puede pagar esta factura. Póngase en contacto con {merchant}.',
  answerTrxElsewhere:
    'Esta transacción envió {amount} TRX a otra dirección, y nada de USDT. No puede pagar esta factura.',
  answerOtherMoved: 'Esta transacción transfirió otro token y nada de USDT. No puede pagar esta factura.',
  answerNothingMoved: 'Esta transacción no transfirió USDT. No puede pagar esta factura.',
  stillWaits: 'Esta factura sigue a la espera de su pago.',
  answerNotFound:
    'La red TRON todavía no conoce esta transacción. Si acaba de enviarla, consulte de nuevo en {duration}. Si su exchange la muestra como interna o fuera de la cadena (off-chain), no está en TRON y no puede llegarnos: póngase en contacto con {merchant}.',
  answerNotTron:
    'Es una transacción de {chain}, no de TRON. Un pago por otra red no nos llega. Póngase en contacto con el soporte de la billetera o del exchange desde donde hizo el envío.',
  answerIsAddress: 'Esto es una dirección. Necesitamos el ID de la transacción: 64 letras y números.',
  answerIsPart: {
    one: 'Esto es solo una parte de un ID de transacción: {count} carácter de 64. Copie el ID completo.',
    many: 'Esto es solo una parte de un ID de transacción: {count} caracteres de 64. Copie el ID completo.',
    other: 'Esto es solo una parte de un ID de transacción: {count} caracteres de 64. Copie el ID completo.',
  },
  answerIsLink: 'No podemos leer este enlace. Pegue el propio ID de la transacción: 64 letras y números.',
  answerIsOther:
    'Esto no es un ID de transacción. El ID tiene 64 letras y números, y su billetera lo muestra junto con la transferencia.',
  answerUnavailable:
    'No podemos consultar la transacción en este momento. Su pago está a salvo. Inténtelo de nuevo en {duration}.',
  answerLimited: 'Se hicieron varias consultas seguidas. Inténtelo de nuevo en {duration}.',

  // The receipt.
  receipt: 'Recibo',
  receiptLink: 'Recibo para imprimir o guardar',
  receiptPaidTo: 'Pagado a',
  receiptFrom: 'Origen',
  receiptTo: 'Destino',
  receiptNetwork: 'Red',
  receiptSigned: 'Recibo firmado (JSON)',
  receiptProof:
    'Cualquiera puede verificar este pago en la red TRON mediante su transacción. El recibo firmado demuestra que este servicio lo confirmó.',
  backToPayment: 'Volver al pago',

  // Where there is nothing to show.
  notFound: 'No hay ninguna factura en este enlace',
  notFoundText: 'Abra de nuevo el enlace desde donde lo recibió o pida uno nuevo a la tienda.',
  notFoundPaid: 'Si ya pagó, su pago no está perdido: la tienda puede encontrarlo por el ID de la transacción.',
  unavailable: 'Esta página no se puede mostrar en este momento',
  unavailableText: 'Vuelva a cargarla en un minuto.',
  unavailablePaid: 'Si ya pagó, su pago está a salvo y lo detectaremos. **No vuelva a enviarlo.**',
};
