// Keeps the payer's page up to date and copies exactly the shown strings. Without it the page works by its "Check now" link.
const POLL_MS = 3000;
const MAX_PAUSE_MS = 30_000;
// A request that hangs on a sleeping connection must not keep the page old.
const TIMEOUT_MS = 10_000;
const COPIED_MS = 2500;

const { path } = document.body.dataset;
const invoice = document.getElementById('invoice');
const said = document.getElementById('said');
const parts = () => invoice.querySelectorAll('[data-part]');
// The HTML of each part as the server sent it, for `enhance` changes what stands in the page.
const received = new Map();
const local = new Intl.DateTimeFormat(document.documentElement.lang, {
  dateStyle: 'medium',
  timeStyle: 'short',
  hourCycle: new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions().hourCycle,
});

let round = 0;
let failures = 0;
let timer;
let controller;

function enhance(part) {
  for (const button of part.querySelectorAll('[data-copy]')) button.hidden = false;
  for (const time of part.querySelectorAll('time')) {
    time.textContent = local.format(new Date(time.dateTime));
    time.title = `${time.dateTime.slice(0, 16).replace('T', ' ')} UTC`;
  }
  if (part.id === 'check' && part.firstElementChild) sayConnection(part);
}

// In the line of "Check now", so that nothing moves.
function sayConnection(part) {
  let line = part.querySelector('span');
  if (!line) {
    line = document.createElement('span');
    part.prepend(line, ' ');
  }
  const text = failures > 1 ? 'No connection. Trying again…' : 'This page updates itself.';
  if (line.textContent === text) return;
  const isFirst = line.textContent === '';
  line.textContent = text;
  if (!isFirst) announce(text);
}

function announce(text) {
  said.textContent = text;
}

function apply(next) {
  for (const part of parts()) {
    const replacement = next.querySelector(`#${part.id}`);
    // Only what changed is replaced, so a screen reader hears each state once and a selection is not lost.
    if (replacement.innerHTML === received.get(part.id)) continue;
    received.set(part.id, replacement.innerHTML);
    enhance(replacement);
    part.replaceChildren(...replacement.childNodes);
  }
  invoice.dataset.state = next.dataset.state;
  if (document.title !== next.dataset.title) document.title = next.dataset.title;
  // Reloading must not forget that a payment was seen.
  const link = invoice.querySelector('#check a');
  if (link && link.href !== location.href) history.replaceState(null, '', link.href);
}

async function load(signal) {
  const query = new URL(invoice.querySelector('#check a').href).search;
  const response = await fetch(`${path}/fragment${query}`, { cache: 'no-store', signal });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('invoice');
}

// The newest round wins: waking up does not wait for a request that fell asleep.
async function refresh() {
  if (invoice.dataset.state === 'paid') return;
  clearTimeout(timer);
  if (controller) controller.abort();
  const mine = ++round;
  const own = new AbortController();
  controller = own;
  timer = setTimeout(() => own.abort(), TIMEOUT_MS);
  try {
    const next = await load(own.signal);
    if (mine !== round) return;
    failures = 0;
    apply(next);
  } catch {
    if (mine !== round) return;
    failures++;
  }
  clearTimeout(timer);
  const check = document.getElementById('check');
  if (check.firstElementChild) sayConnection(check);
  if (invoice.dataset.state !== 'paid') timer = setTimeout(refresh, Math.min(POLL_MS * 2 ** failures, MAX_PAUSE_MS));
}

async function copy(button) {
  const { copy: text, from } = button.dataset;
  const isCopied = await write(text, document.getElementById(from));
  // An announcement that equals the last one would not be heard.
  announce('');
  requestAnimationFrame(() => announce(isCopied ? `Copied: ${text}` : 'Not copied. It is selected: copy it by hand.'));
  const label = button.firstChild;
  label.data = isCopied ? 'Copied' : 'Selected';
  clearTimeout(button.timer);
  button.timer = setTimeout(() => {
    label.data = 'Copy';
    // The page must not go on holding an amount or address that is no longer to be paid.
    announce('');
  }, COPIED_MS);
}

// Pages that are not served by HTTPS have no clipboard, so there the shown string is selected and copied as it stands.
async function write(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const selection = getSelection();
    selection.selectAllChildren(shown);
    return selection.toString() === text && document.execCommand('copy');
  }
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) copy(button);
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refresh();
});
addEventListener('pageshow', (event) => {
  if (event.persisted) refresh();
});
addEventListener('online', refresh);
for (const part of parts()) {
  received.set(part.id, part.innerHTML);
  enhance(part);
}
timer = setTimeout(refresh, POLL_MS);
