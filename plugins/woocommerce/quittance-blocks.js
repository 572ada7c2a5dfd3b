// Shows the payment method in the checkout of blocks; class-quittance-blocks.php gives it the words of the settings.
(({ wcBlocksRegistry, wcSettings }, { element, htmlEntities }) => {
  const { title, description } = wcSettings.getSetting('quittance_data', {});
  const label = htmlEntities.decodeEntities(title || 'USDT (TRON)');
  const content = element.createElement('div', null, htmlEntities.decodeEntities(description || ''));
  wcBlocksRegistry.registerPaymentMethod({
    name: 'quittance',
    label,
    ariaLabel: label,
    content,
    edit: content,
    canMakePayment: () => true,
    supports: { features: ['products'] },
  });
})(window.wc, window.wp);
