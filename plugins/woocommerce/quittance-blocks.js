// Shows the payment method in the checkout of blocks, with the words of the settings.
(({ wcBlocksRegistry, wcSettings }, { element, htmlEntities }) => {
  const { title, description } = wcSettings.getSetting('quittance_data', {});
  const label = htmlEntities.decodeEntities(title || 'USDT (TRON)');
  const content = element.createElement('div', null, htmlEntities.decodeEntities(description || ''));
  const words = { label, ariaLabel: label, content, edit: content };
  wcBlocksRegistry.registerPaymentMethod({
    name: 'quittance',
    ...words,
    canMakePayment: () => true,
    supports: { features: ['products'] },
  });
})(window.wc, window.wp);
