// For a shop's own page: a link with `data-quittance` opens the payer's page in a dialog. The link hears `quittance` events with the state
// that the page shows, which prove nothing: only the API and webhooks do. Where the page must not be framed, the browser goes to it.
(() => {
  const { origin } = new URL(document.currentScript.src);
  const make = (name, style, fields) => {
    const element = Object.assign(document.createElement(name), fields);
    element.style.cssText = style;
    return element;
  };
  addEventListener('click', (event) => {
    const link = event.target.closest('a[data-quittance]');
    const isPlain = !(
      event.defaultPrevented ||
      event.button ||
      event.ctrlKey ||
      event.metaKey ||
      event.shiftKey ||
      event.altKey
    );
    if (!link || link.origin !== origin || !isPlain || !window.HTMLDialogElement) return;
    event.preventDefault();
    const dialog = make(
      'dialog',
      'padding:0;border:0;width:30rem;max-width:100%;height:50rem;max-height:100%;overflow:hidden',
    );
    const close = make(
      'button',
      'display:block;margin-left:auto;border:0;background:none;width:44px;height:44px;font:24px/44px sans-serif',
      {
        textContent: '×',
        type: 'button',
      },
    );
    close.setAttribute('aria-label', link.dataset.close || 'Close');
    const title = link.getAttribute('aria-label') || link.textContent.trim() || link.title || 'Payment';
    dialog.setAttribute('aria-label', title);
    const frame = make('iframe', 'border:0;width:100%;height:calc(100% - 44px)', {
      src: link.href,
      title,
    });
    frame.allow = 'clipboard-write';
    let isHeard;
    let isLoaded;
    let timer;
    let state;
    const hear = (message) => {
      if (message.source !== frame.contentWindow || message.origin !== origin || !message.data) return;
      isHeard = true;
      // Escape was pressed in the frame, where the dialog does not hear it.
      if (message.data.close) return dialog.close();
      // The page also speaks when something else changes, such as the number of confirmations.
      if (message.data.state === state) return;
      ({ state } = message.data);
      link.dispatchEvent(new CustomEvent('quittance', { bubbles: true, detail: state }));
    };
    addEventListener('message', hear);
    close.onclick = () => dialog.close();
    dialog.onclose = () => {
      removeEventListener('message', hear);
      dialog.remove();
    };
    // "Check now" loads the page again, and that answer may not be framed. So each one is asked whether it is the page. A page of an older
    // release does not answer, but has spoken by its first load. Offline, the link would only lead to an error page of the browser.
    frame.onload = () => {
      if (isLoaded) isHeard = false;
      isLoaded = true;
      frame.contentWindow.postMessage('', '*');
      clearTimeout(timer);
      timer = setTimeout(() => isHeard || !dialog.open || !navigator.onLine || location.assign(link.href), 1000);
    };
    dialog.append(close, frame);
    document.body.append(dialog);
    dialog.showModal();
  });
})();
