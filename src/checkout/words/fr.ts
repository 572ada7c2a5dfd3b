import type { Catalogue } from './catalogue.ts';

/** The words of the payer's page in French. */
export const fr: Catalogue = {
  // The title of the window, in each state.
  titlePay: 'Payer {amount} USDT à {merchant}',
  titleFound: 'Paiement détecté : {merchant}',
  titlePaid: 'Payé : {merchant}',
  titleReceipt: 'Reçu : {merchant}',

  paymentTo: 'Paiement à {merchant}',
  testNetwork: '**Paiement de test.** Vous êtes sur le réseau de test {network} : n’envoyez pas d’argent réel.',

  // The states.
  waiting: 'En attente de votre paiement',
  expired: 'Le délai est écoulé, mais vous pouvez encore payer',
  expiredText:
    'Un paiement de ce montant exact reste valable. Si vous l’avez déjà envoyé, vous n’avez plus rien à faire.',
  found: 'Paiement détecté',
  foundText: '**Ne payez pas une seconde fois.** Vous pouvez fermer cette page.',
  paid: 'Payé',
  paidText: 'Votre paiement est définitif. Vous n’avez plus rien à faire.',
  gone: 'En attente de la réapparition de votre paiement',
  goneText:
    'Le réseau a remplacé le bloc qui contenait votre paiement. Cela arrive de temps en temps et, en général, le transfert réapparaît de lui-même en quelques minutes. **Ne payez pas une seconde fois**, sauf si votre portefeuille indique que le transfert a échoué.',
  goneShow: 'Le transfert a échoué ? Afficher comment payer',
  blindText:
    'Nous ne voyons pas le réseau TRON pour le moment. **Votre paiement est en sécurité** et sera détecté dès que nous le verrons de nouveau.',

  // How to pay.
  sendExactly: 'Envoyez exactement',
  network: 'USDT sur le réseau TRON (TRC-20) uniquement',
  allDigits:
    'Tous les chiffres comptent : les derniers nous indiquent que le paiement est le vôtre. Vérifiez que votre portefeuille les affiche tous.',
  toAddress: 'À cette adresse',
  qrLabel: 'Code QR de l’adresse',
  qrHint:
    'Le code QR ne contient que l’adresse ; saisissez vous-même le montant. L’argent envoyé sur tout autre réseau que TRON est perdu.',
  oneTransfer:
    '**Un seul transfert, exactement de ce montant.** Les paiements en plusieurs fois ou complétés ensuite ne peuvent pas être identifiés.',
  neverHistory:
    'Ne copiez jamais l’adresse depuis l’historique de votre portefeuille : des escrocs y glissent des adresses ressemblantes.',

  // The time to pay. `{duration}` is "29 minutes".
  payBy: 'À payer avant : {time}',
  timeLeft: 'Il reste {duration}.',
  timeLeftAtOpening: 'Il restait {duration} à l’ouverture de cette page.',
  lessThanMinute: 'Il reste moins d’une minute.',
  laterCounts: 'Passé ce délai, un paiement reste valable.',
  clockStands: 'Le délai de paiement est suspendu jusqu’à ce que nous voyions de nouveau le réseau.',
  timeEnded: 'Fin du délai de paiement : {time}.',

  // While blocks are built on it.
  foundInBlock:
    'Détecté dans le bloc {block}. Il sera définitif quand environ {required} producteurs de blocs l’auront confirmé, généralement en moins d’une minute.',
  built: '{built} sur {required}',

  // Facts of the payment.
  amount: 'Montant',
  time: 'Date et heure',
  block: 'Bloc',
  transaction: 'Transaction',
  secondPayment:
    'Un second paiement du même montant est arrivé : {transaction}. Contactez {merchant} pour le récupérer.',

  // Buttons and links. `copyAmount` and `copyAddress` are read out in place of `copy`.
  copy: 'Copier',
  copied: 'Copié',
  selected: 'Sélectionné',
  copyAmount: 'Copier le montant',
  copyAddress: 'Copier l’adresse',
  copiedText: 'Copié : {text}',
  notCopied: 'La copie n’a pas fonctionné. Le texte est sélectionné : copiez-le manuellement.',
  checkNow: 'Vérifier maintenant',
  updatesItself: 'Cette page s’actualise toute seule.',
  noConnection: 'Pas de connexion. Nouvelle tentative…',
  returnTo: 'Retour à {merchant}',
  support: 'Des questions ? Contactez {merchant} : {contact}',
  changeLanguage: 'Langue',
  print: 'Imprimer',

  // Wallets.
  wallets: 'Ouvrir dans un portefeuille',
  openTronLink: 'Ouvrir cette page dans TronLink',
  openTrust: 'Payer avec Trust Wallet',
  walletsHint:
    'Avant de confirmer, comparez le montant et l’adresse affichés par le portefeuille avec ceux de cette page.',
  payHere: 'Payer avec ce portefeuille',
  walletWait: 'Confirmez le transfert dans votre portefeuille.',
  walletSent:
    'Envoyé. **Ne payez pas une seconde fois.** Cette page affichera le paiement dès qu’il sera sur le réseau.',
  walletRefused: 'Le portefeuille n’a pas envoyé le transfert. Rien n’a été payé.',
  walletUnknown:
    'Nous ne savons pas si le portefeuille a envoyé le transfert. Consultez l’historique de votre portefeuille avant de réessayer.',
  walletOtherNetwork: 'Ce portefeuille est sur un autre réseau. Passez sur {network}.',

  // The exchange's fee.
  feeTitle: 'Vous payez depuis une plateforme d’échange ?',
  feeText:
    'Beaucoup de plateformes d’échange prélèvent leurs frais sur le montant, si bien que le montant reçu est inférieur. Saisissez ces frais et nous vous dirons combien indiquer pour que le montant reçu soit exactement de {amount} USDT.',
  feeLabel: 'Frais de la plateforme en USDT',
  feeButton: 'Calculer',
  feeResult:
    'Saisissez {total} USDT sur la plateforme : une fois ses frais de {fee} déduits, le montant reçu sera exactement de {amount}.',
  feeCheck:
    'Vérifiez le montant que le destinataire recevra selon la plateforme. Si elle vous permet de saisir ce montant-là, saisissez {amount}.',
  feeInvalid: 'Saisissez les frais sous forme de nombre avec 6 décimales au maximum, par exemple 1.5.',

  // The address in the clipboard.
  pasteTitle: 'Vérifiez l’adresse que vous avez copiée',
  pasteText:
    'Certains logiciels malveillants remplacent les adresses lors de la copie. Collez ici l’adresse à laquelle vous allez envoyer l’argent.',
  pasteLabel: 'L’adresse copiée',
  pasteButton: 'Comparer',
  pasteSame: 'C’est la même adresse.',
  pasteOther:
    '**C’est une autre adresse. N’y envoyez rien.** Copiez de nouveau l’adresse depuis cette page, puis vérifiez-la encore.',
  pasteNoAddress: 'Ce n’est pas une adresse TRON. Copiez de nouveau l’adresse depuis cette page.',

  // Finding a payment by its transaction.
  findTitle: 'J’ai payé, mais cette page ne l’affiche pas',
  findOther: 'Rechercher une autre transaction',
  findText:
    'Collez l’identifiant de transaction (TxID) ou le lien Tronscan fourni par votre portefeuille ou votre plateforme d’échange. Un transfert interne à une plateforme ne donne lieu à aucune transaction TRON et ne peut pas nous parvenir.',
  findLabel: 'Identifiant de transaction ou lien Tronscan',
  findButton: 'Rechercher',
  searching: 'Recherche…',
  answerTitle: 'Ce que nous savons de cette transaction',

  // The answers. `{merchant}` is who gets the money.
  answerPaid:
    '**Cette transaction a réglé cette facture.** {amount} USDT dans le bloc {block}, paiement définitif. Vous n’avez plus rien à faire.',
  answerConfirming:
    '**C’est votre paiement.** {amount} USDT dans le bloc {block}, confirmations : {built} sur {required}. Ne payez pas une seconde fois.',
  answerSecond:
    'L’adresse et le montant sont corrects, mais c’est un second paiement : un autre est arrivé avant, et celui-ci ne sera pas pris en compte. Contactez {merchant} pour récupérer l’argent. La première transaction : {transaction}',
  answerAlreadyPaid:
    'L’adresse et le montant sont corrects, mais cette facture était déjà payée. Contactez {merchant} pour récupérer l’argent. La transaction prise en compte : {transaction}',
  answerAlreadyPaidOther:
    'L’adresse et le montant sont corrects, mais cette facture était déjà payée. Contactez {merchant} pour récupérer l’argent.',
  answerNotExamined:
    '**L’adresse et le montant sont corrects.** Nous n’avons pas encore lu le bloc {block}, qui contient cette transaction ; le paiement sera pris en compte d’ici une à deux minutes. Ne payez pas une seconde fois.',
  answerNotConfirmed:
    'L’adresse et le montant semblent corrects, mais trop peu de nœuds du réseau nous ont montré cette transaction pour le moment. Ne payez pas une seconde fois ; consultez-la de nouveau dans {duration}.',
  answerNotRecorded:
    'L’adresse et le montant semblent corrects, mais cette transaction ne figure pas dans nos registres. Ne payez pas une seconde fois : communiquez cet identifiant de transaction à {merchant}.',
  answerBeforeInvoice:
    'Cette transaction a été envoyée avant la création de cette facture et ne peut donc pas la régler. Envoi : {time}. Création de la facture : {created}. Contactez {merchant}.',
  answerShort:
    'L’adresse est la bonne, mais le montant reçu est de {arrived} USDT au lieu de {expected} : {by} de moins. Le paiement ne peut pas être rattaché automatiquement à cette facture. **N’envoyez pas le reste** ; contactez {merchant}.',
  answerOver:
    'L’adresse est la bonne, mais le montant reçu est de {arrived} USDT au lieu de {expected} : {by} de plus. Le paiement ne peut pas être rattaché automatiquement à cette facture. **Ne payez pas une seconde fois** ; contactez {merchant}.',
  likelyRequested: 'C’est le prix sans les derniers chiffres, qui identifient ce paiement comme le vôtre.',
  likelyFee: 'La différence ressemble à des frais prélevés sur le montant.',
  likelyFeeAdded: 'Il semble que des frais aient été ajoutés au montant, puis n’aient pas été prélevés.',
  likelyRounded: {
    one: 'Le montant semble avoir été arrondi à {count} décimale.',
    many: 'Le montant semble avoir été arrondi à {count} décimales.',
    other: 'Le montant semble avoir été arrondi à {count} décimales.',
  },
  likelyTruncated: {
    one: 'Le montant semble avoir été coupé après {count} décimale.',
    many: 'Le montant semble avoir été coupé après {count} décimales.',
    other: 'Le montant semble avoir été coupé après {count} décimales.',
  },
  likelyDigit: 'Un chiffre diffère : il s’agit sans doute d’une faute de frappe.',
  likelySwapped: 'Deux chiffres voisins semblent avoir été intervertis.',
  answerOtherAddress:
    '{amount} USDT ont été envoyés à une autre adresse : {to}. Si {merchant} vous a donné cette adresse, contactez {merchant} avec l’identifiant de cette transaction. Sinon, seul son propriétaire peut rendre l’argent.',
  answerOtherToken:
    'Cette transaction a transféré un autre jeton que l’USDT, quel que soit le nom qu’il se donne (contrat {contract}). Elle ne peut pas régler cette facture. Contactez {merchant}.',
  answerFailed: 'Cette transaction a échoué sur le réseau : **elle n’a rien payé**.',
  failedMaySend: 'Si vous n’avez pas fait d’autre envoi, vous pouvez recommencer.',
  failedNotFinal:
    'Ce n’est pas encore définitif. Ne payez pas une seconde fois ; consultez-la de nouveau dans {duration}.',
  failedOtherFound: 'Un autre paiement a été détecté. **Ne payez pas une seconde fois.**',
  failedEnergy:
    'Le portefeuille n’avait pas assez d’énergie ou de TRX pour les frais de réseau : il lui faut plus de TRX.',
  failedTime: 'Le réseau a manqué de temps pour l’exécuter.',
  failedReverted: 'Le contrat du jeton l’a refusée : le portefeuille n’avait peut-être pas assez d’USDT.',
  failedOther: 'Le réseau indique : {result}.',
  answerTrxHere:
    'Cette transaction a envoyé {amount} TRX à la bonne adresse, mais le TRX n’est pas de l’USDT : elle ne peut donc pas régler cette facture. Contactez {merchant}.',
  answerTrxElsewhere:
    'Cette transaction a envoyé {amount} TRX à une autre adresse, et aucun USDT. Elle ne peut pas régler cette facture.',
  answerOtherMoved:
    'Cette transaction a transféré un autre jeton et aucun USDT. Elle ne peut pas régler cette facture.',
  answerNothingMoved: 'Cette transaction n’a transféré aucun USDT. Elle ne peut pas régler cette facture.',
  stillWaits: 'Cette facture attend toujours son paiement.',
  answerNotFound:
    'Le réseau TRON ne connaît pas encore cette transaction. Si vous venez de l’envoyer, consultez-la de nouveau dans {duration}. Si votre plateforme d’échange l’indique comme interne ou hors chaîne (off-chain), elle n’est pas sur TRON et ne peut pas nous parvenir : contactez {merchant}.',
  answerNotTron:
    'C’est une transaction du réseau {chain}, et non du réseau TRON. Un paiement sur un autre réseau ne nous parvient pas. Contactez l’assistance du portefeuille ou de la plateforme d’échange d’où vous avez fait l’envoi.',
  answerIsAddress: 'C’est une adresse. Il nous faut l’identifiant de la transaction : 64 lettres et chiffres.',
  answerIsPart: {
    one: 'Ce n’est qu’une partie d’un identifiant de transaction : {count} caractère sur 64. Copiez l’identifiant entier.',
    many: 'Ce n’est qu’une partie d’un identifiant de transaction : {count} caractères sur 64. Copiez l’identifiant entier.',
    other:
      'Ce n’est qu’une partie d’un identifiant de transaction : {count} caractères sur 64. Copiez l’identifiant entier.',
  },
  answerIsLink:
    'Nous ne pouvons pas lire ce lien. Collez l’identifiant de transaction lui-même : 64 lettres et chiffres.',
  answerIsOther:
    'Ce n’est pas un identifiant de transaction. Un identifiant compte 64 lettres et chiffres, et votre portefeuille l’affiche avec le transfert.',
  answerUnavailable:
    'Nous ne pouvons pas consulter cette transaction pour le moment. Votre paiement est en sécurité. Réessayez dans {duration}.',
  answerLimited: 'Plusieurs recherches viennent d’être faites. Réessayez dans {duration}.',

  // The receipt.
  receipt: 'Reçu',
  receiptLink: 'Reçu à imprimer ou à conserver',
  receiptPaidTo: 'Payé à',
  receiptFrom: 'De',
  receiptTo: 'À',
  receiptNetwork: 'Réseau',
  receiptSigned: 'Reçu signé (JSON)',
  receiptProof:
    'Chacun peut vérifier ce paiement sur le réseau TRON grâce à sa transaction. Le reçu signé prouve que ce service l’a confirmé.',
  backToPayment: 'Retour au paiement',

  // Where there is nothing to show.
  notFound: 'Aucune facture ne correspond à ce lien',
  notFoundText: 'Ouvrez de nouveau le lien là où vous l’avez reçu, ou demandez-en un nouveau au vendeur.',
  notFoundPaid:
    'Si vous avez déjà payé, votre paiement n’est pas perdu : le vendeur peut le retrouver grâce à son identifiant de transaction.',
  unavailable: 'Cette page ne peut pas être affichée pour le moment',
  unavailableText: 'Rechargez-la dans une minute.',
  unavailablePaid:
    'Si vous avez déjà payé, votre paiement est en sécurité et sera détecté. **Ne payez pas une seconde fois.**',
};
