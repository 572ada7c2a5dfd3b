// Copies, opens dialogs, and takes keys. Without it every page of the console works by its links and forms.
const COPIED_MS = 2500;
const SECOND_KEY_MS = 1500;

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const said = find('#said');

// An announcement that equals the last one would not be heard.
function announce(text) {
  said.textContent = '';
  requestAnimationFrame(() => {
    said.textContent = text;
  });
}

async function copy(button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
    announce('Copied');
  } catch {
    button.textContent = 'Not allowed here';
    announce('The browser does not allow to copy here; select the text instead');
  }
  setTimeout(() => {
    button.textContent = before;
  }, COPIED_MS);
}

const openDialog = (id) => find(`#${id}`)?.showModal();

function enliven(within) {
  for (const button of all('[data-copy]', within)) {
    button.hidden = false;
    button.addEventListener('click', () => copy(button));
  }
  for (const button of all('[data-open]', within)) {
    button.hidden = false;
    button.addEventListener('click', () => openDialog(button.dataset.open));
  }
  // A form that is sent twice by two clicks does its work once, and would say that it was refused.
  for (const form of all('form[method="post"]', within)) {
    form.addEventListener('submit', (event) => {
      // Into a frame: it only shows something.
      if (event.submitter?.formTarget) return;
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = 'yes';
    });
  }
}
enliven(document);
// A page that comes back from the browser's memory can be sent again, and the server says whether it may.
addEventListener('pageshow', () => {
  for (const form of all('form[data-sent]')) delete form.dataset.sent;
});

// Who speaks to the computer, or rests a hand on the keys, can switch them off (WCAG 2.1.4).
const SETTING = 'quittance-keys';
const isOn = () => {
  try {
    return localStorage.getItem(SETTING) !== 'off';
  } catch {
    return true;
  }
};
const setting = find('#keys-on');
if (setting) {
  setting.checked = isOn();
  setting.addEventListener('change', () => {
    try {
      localStorage.setItem(SETTING, setting.checked ? 'on' : 'off');
    } catch {
      announce('The browser does not keep this setting');
    }
  });
}

function walk(step) {
  const rows = all('a.row');
  const current = rows.findIndex((row) => row.closest('tr')?.contains(document.activeElement));
  const next = current === -1 ? (step > 0 ? 0 : rows.length - 1) : current + step;
  rows[Math.min(Math.max(next, 0), rows.length - 1)]?.focus();
}

function resolve() {
  const row = document.activeElement?.closest('tr');
  const link = row && find('a[data-resolve]', row);
  if (link) location.assign(`${link.href}#decide`);
  else find('#decide')?.scrollIntoView();
}

const KEYS = {
  '/': () => find('#q')?.focus(),
  '?': () => openDialog('keys'),
  j: () => walk(1),
  k: () => walk(-1),
  r: resolve,
};

let waitsUntil = 0;
addEventListener('keydown', (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !isOn()) return;
  if (target.closest?.('input, select, textarea, dialog[open]')) return;
  if (performance.now() < waitsUntil) {
    waitsUntil = 0;
    const link = find(`[data-go="${CSS.escape(key)}"]`);
    if (link) link.click();
    return;
  }
  if (key === 'g') waitsUntil = performance.now() + SECOND_KEY_MS;
  if (!Object.hasOwn(KEYS, key)) return;
  event.preventDefault();
  KEYS[key]();
});

// Passkeys, where the browser knows them and their JSON.
for (const form of all('form[data-passkey]')) {
  const { dataset } = form;
  const isNew = dataset.passkey === 'create';
  const read = globalThis.PublicKeyCredential?.[isNew ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON'];
  if (!read) continue;
  form.hidden = false;
  const answer = (isNew && form.elements.created) || form.elements.passkey;
  form.addEventListener('submit', async (event) => {
    if (answer.value) return;
    event.preventDefault();
    delete dataset.sent;
    try {
      const publicKey = read.call(PublicKeyCredential, JSON.parse(dataset.options));
      const made = await navigator.credentials[isNew ? 'create' : 'get']({ publicKey });
      answer.value = JSON.stringify(made.toJSON());
      form.submit();
    } catch {
      announce('No passkey was used: try again, or use a password');
    }
  });
}

// A picture goes with its form as text, so that a form is sent, proved and shown again as any other.
for (const input of all('input[data-into]')) {
  const into = input.form.elements[input.dataset.into];
  input.closest('[data-picture]').hidden = false;
  input.addEventListener('change', async () => {
    const [file] = input.files;
    const most = Number(input.dataset.most);
    into.value = '';
    input.setCustomValidity(file ? 'Wait until the file is read' : '');
    if (!file) return;
    if (file.size > most) {
      input.setCustomValidity(`This file has ${file.size} bytes, and a logo at most ${most}: choose a smaller one`);
      input.reportValidity();
      return;
    }
    try {
      const bytes = new Uint8Array(await file.arrayBuffer());
      // Of this alphabet no character takes three bytes in a form.
      const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
      into.value = text.replaceAll('+', '-').replaceAll('/', '_');
      input.setCustomValidity('');
    } catch {
      input.setCustomValidity('This file cannot be read: choose it again');
      input.reportValidity();
    }
  });
}

// The server says that something may have changed, and the page asks for itself again.
const EVERY_MS = 3000;
const BEATS_MS = 35_000;
const regions = all('[data-live]');
const stale = find('#stale');

function patch(region, fresh) {
  if (!fresh || fresh.textContent === region.textContent || region.contains(document.activeElement)) return;
  if (region.dataset.live === 'rows') return patchRows(region, fresh);
  region.replaceChildren(...fresh.childNodes);
  enliven(region);
}

// Rows change where they stand. New ones wait, so that nothing moves under the pointer.
function patchRows(region, fresh) {
  const rows = new Map(all('a.row', fresh).map((link) => [link.pathname, link.closest('tr')]));
  for (const link of all('a.row', region)) {
    const row = link.closest('tr');
    const newer = rows.get(link.pathname);
    rows.delete(link.pathname);
    if (newer && newer.textContent !== row.textContent) row.replaceWith(newer);
  }
  if (rows.size === 0) return;
  let news = find('#news');
  if (!news) {
    region.insertAdjacentHTML('beforebegin', '<p id="news" role="status"><a class="button quiet"></a></p>');
    news = find('#news');
    news.firstChild.href = location.href;
  }
  news.firstChild.textContent = `${rows.size} new: show`;
}

// A page that keeps nothing up to date says at least when it is cut off.
if (regions.length > 0 || find('nav')) {
  let shownAt = new Date();
  let timer;
  let beats;
  const source = new EventSource('/live');
  const lose = () => {
    stale.textContent = `Not connected: as of ${shownAt.toISOString().slice(11, 19)} UTC`;
    stale.hidden = false;
  };
  const listen = () => {
    clearTimeout(beats);
    beats = setTimeout(lose, BEATS_MS);
  };
  const refresh = async () => {
    timer = undefined;
    try {
      const answer = await fetch(location.href);
      // Signed out, or the page is not there to be asked for.
      if (answer.redirected || (answer.status >= 400 && answer.status < 500)) {
        lose();
        source.close();
      } else if (answer.ok) {
        const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
        for (const region of regions) patch(region, find(`#${region.id}`, fresh));
        shownAt = new Date();
        stale.hidden = true;
      } else lose();
    } catch {
      lose();
    }
  };
  const look = () => {
    if (regions.length === 0) return;
    if (!document.hidden && timer === undefined) timer = setTimeout(refresh, EVERY_MS * Math.random());
  };
  source.addEventListener('changed', look);
  source.addEventListener('beat', listen);
  source.addEventListener('open', () => {
    if (regions.length === 0) stale.hidden = true;
    else if (!stale.hidden) look();
  });
  source.addEventListener('error', lose);
  document.addEventListener('visibilitychange', look);
  listen();
}
