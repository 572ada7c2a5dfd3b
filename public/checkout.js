// Keeps the payer's page up to date, copies exactly the shown strings, and asks for answers without leaving the page. Without it
// the page works by its links and forms. Safari 13 and Chrome 80 run it.
const POLL_MS = 3000;
const MAX_PAUSE_MS = 30_000;
// A request that hangs on a sleeping connection must not keep the page old.
const TIMEOUT_MS = 10_000;
// Three beats of the server were missed.
const SILENCE_MS = 50_000;
const COPIED_MS = 2500;
const CLOCK_MS = 5000;
const CHECK_MS = 1000;
const MINUTE_MS = 60_000;
// A wallet that has not answered by then may be locked, or hide its question; its button must not stay off.
const WALLET_MS = 60_000;

const { path } = document.body.dataset;
const { lang } = document.documentElement;
const texts = JSON.parse(document.body.dataset.texts);
const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const invoice = find('#invoice');
const said = find('#said');
const put = (element, nodes = []) => {
  element.textContent = '';
  element.append(...nodes);
};
// Some privacy tools take functions of the browser away, or make them throw. Without any one of them the page still follows the payment.
const elapsed = () => (window.performance || Date).now();
const attempt = (use) => {
  try {
    return use();
  } catch {
    return undefined;
  }
};

const DATE = { day: 'numeric', month: 'short', year: 'numeric' };
function local(date, isClock) {
  const { hourCycle } = new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();
  const clock = { hour: hourCycle === 'h23' ? '2-digit' : 'numeric', minute: '2-digit', hourCycle };
  return new Intl.DateTimeFormat(lang === 'en' ? 'en-GB' : lang, isClock ? clock : { ...DATE, ...clock }).format(date);
}

// The time of the server when this page began to count: the clock of the device may be wrong.
let start;
const setTime = (serverMs) => {
  start = serverMs - elapsed();
};
const serverNow = () => start + elapsed();

const isPaid = () => invoice.dataset.state === 'paid';

// As the server writes it.
function duration(ms) {
  const minutes = Math.floor(ms / MINUTE_MS);
  const [count, unit] =
    minutes < 120
      ? [minutes, 'minute']
      : minutes < 2880
        ? [Math.floor(minutes / 60), 'hour']
        : [Math.floor(minutes / 1440), 'day'];
  try {
    return new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'short' }).format(count);
  } catch {
    // Safari before 14.1 knows no units. Their international signs need no translation.
    return `${count} ${{ minute: 'min', hour: 'h', day: 'd' }[unit]}`;
  }
}

// On a shop's page, in a frame of a site that the operator named: the shop hears the state, which proves nothing, and the frame holds this page
// alone.
const isFramed = parent !== window;
function tellShop() {
  if (isFramed && invoice) parent.postMessage({ state: invoice.dataset.shopState }, '*');
}

function openOutside(link) {
  if (!link.protocol.startsWith('http') || link.pathname === path) return;
  link.target = link.closest('.return') ? '_top' : '_blank';
  link.rel = 'noreferrer';
}

function tick() {
  for (const clock of all('[data-until]')) {
    const ms = Date.parse(clock.dataset.until) - serverNow();
    const text = ms < MINUTE_MS ? texts.lessThanMinute : texts.timeLeft.replace('{duration}', duration(ms));
    if (clock.textContent !== text) clock.textContent = text;
  }
  // Some wallets come late and tell nobody.
  offerWallet();
}

function enhance(within) {
  for (const element of all('[data-copy],[data-print]', within)) element.hidden = false;
  for (const time of all('time', within)) {
    // Without the browser's own format, the server's text in UTC stays.
    time.textContent = attempt(() => local(new Date(time.dateTime), 'clock' in time.dataset)) || time.textContent;
    time.title = `${time.dateTime.slice(0, 16).replace('T', ' ')} UTC`;
  }
  for (const element of all('.unscripted', within)) element.hidden = true;
  if (isFramed) all('a[href]', within).forEach(openOutside);
  for (const element of all('.scripted', within)) element.classList.add('on');
  if (within.id === 'check') sayConnection();
}

// An announcement that equals the last one would not be heard.
function announce(text) {
  said.textContent = '';
  setTimeout(() => {
    said.textContent = text;
  });
}

let isCutOff = false;
// In the line of "Check now", so that nothing moves.
function sayConnection() {
  const line = find('#check p');
  if (!line) return;
  let span = find('span', line);
  if (!span) {
    span = document.createElement('span');
    // Chinese and Japanese have no space behind a full stop.
    line.prepend(span, texts.updatesItself.endsWith('。') ? '' : ' ');
  }
  const text = isCutOff ? texts.noConnection : texts.updatesItself;
  if (span.textContent === text) return;
  if (span.textContent !== '') announce(text);
  span.textContent = text;
}

function setCutOff(value) {
  isCutOff = value;
  sayConnection();
}

// Each part as the service wrote it.
const shown = Object.fromEntries(all('[data-part]').map((part) => [part.id, part.innerHTML]));
let { title } = document;

// When the page last heard the service, by two clocks: the first may stand still while the device sleeps, and the second may be set.
const clocks = () => [elapsed(), Date.now()];
let lastHeard = window.performance ? [0, Date.now() - elapsed()] : clocks();
let cover;

// Payment may have been suspended meanwhile, so a page that has heard nothing for a minute hides how to pay until it hears again.
// Returns whether it begins to.
function check() {
  const isOld = shown.pay && clocks().some((now, i) => Math.abs(now - lastHeard[i]) >= MINUTE_MS);
  if (!isOld === !cover) return false;
  if (isOld) {
    cover = document.createElement('p');
    cover.className = 'notice';
    cover.textContent = texts.checking;
    find('#pay').before(cover);
    wake();
  } else {
    cover.remove();
    cover = undefined;
  }
  invoice.classList.toggle('covered', !!cover);
  document.title = cover ? texts.checking : title;
  // The title asks for the payment again, for payers who can't see the page.
  announce(cover ? texts.checking : title);
  return !!cover;
}

function hear() {
  lastHeard = clocks();
  failures = 0;
  setCutOff(false);
  check();
  // A form whose answer did not come is sent again as it was.
  for (const form of all('form')) if (form.unanswered) ask(form, form.unanswered);
}

function apply(message) {
  const { version, state, shopState, now, parts } = message;
  // Of a page that was suspended from the start there is nothing but that.
  if (state !== 'suspended' && !find('#find')) return location.reload();
  ({ title } = message);
  setTime(now);
  for (const [name, content] of Object.entries(parts)) {
    const part = find(`#${name}`);
    // Of a newer release: it shows with the next page.
    if (!part) continue;
    const fresh = document.createElement('template');
    fresh.innerHTML = content;
    // What is the same stays, with what is being typed in it, and is not announced again.
    if (fresh.innerHTML === shown[name]) continue;
    shown[name] = fresh.innerHTML;
    // What was said of a transaction before may no longer be so, and an address that was copied may be suspended.
    if (name === 'status') for (const old of all('#transaction-answer,#said')) put(old);
    put(part, [fresh.content]);
    enhance(part);
  }
  // Last, for what is not shown must be told again.
  invoice.dataset.version = version;
  invoice.dataset.state = state;
  invoice.dataset.shopState = shopState;
  document.title = title;
  tick();
  tellShop();
}

// Only a language that was chosen by hand is asked for; else the browser says again what it prefers.
const [, asked = ''] = /[?&]lang=([\w-]+)/.exec(location.search) || [];
const query = () => `?lang=${asked}&v=${encodeURIComponent(invoice.dataset.version)}`;

let stream;
let silence;
let timer;
let failures = 0;
// Where streams are refused or held back, they are tried now and then.
let streamAfter = 0;
let round = 0;
let controller;

function close() {
  clearTimeout(silence);
  if (stream) stream.close();
  stream = undefined;
}

// Live by events of the server; by asking every few seconds while there is no such stream.
function connect() {
  close();
  if (isPaid()) return;
  const mine = attempt(() => new EventSource(`${path}/live${query()}`));
  if (!mine) {
    streamAfter = elapsed() + MAX_PAUSE_MS;
    return later();
  }
  stream = mine;
  let isHeard = false;
  const giveUp = (next) => {
    if (stream !== mine) return;
    // Its own next try would know neither what the page shows by then nor when to stop.
    close();
    streamAfter = isHeard ? 0 : elapsed() + MAX_PAUSE_MS;
    next();
  };
  // Each sign of life puts off the moment in which the stream counts as dead. The first comes as it opens.
  const wait = () => {
    clearTimeout(silence);
    silence = setTimeout(giveUp, isHeard ? SILENCE_MS : TIMEOUT_MS, refresh);
  };
  const on = (type, handle) =>
    mine.addEventListener(type, (event) => {
      if (stream !== mine) return;
      isHeard = true;
      clearTimeout(timer);
      wait();
      handle(JSON.parse(event.data));
      hear();
    });
  on('page', (message) => {
    apply(message);
    if (isPaid()) close();
  });
  on('beat', (now) => {
    setTime(now);
    tick();
  });
  mine.onerror = () => giveUp(later);
  wait();
}

function later() {
  clearTimeout(timer);
  const pause = document.hidden ? MAX_PAUSE_MS : Math.min(POLL_MS * 2 ** failures, MAX_PAUSE_MS);
  if (!isPaid()) timer = setTimeout(refresh, pause);
}

const abortable = () => attempt(() => new AbortController()) || { abort() {} };
async function request(url, options, own = abortable()) {
  const limit = setTimeout(() => own.abort(), TIMEOUT_MS);
  try {
    const response = await fetch(url, { ...options, signal: own.signal });
    return { status: response.status, text: await response.text(), now: response.headers.get('X-Now') };
  } finally {
    clearTimeout(limit);
  }
}

// The newest round wins: waking up does not wait for a request that fell asleep.
async function refresh() {
  if (isPaid()) return;
  clearTimeout(timer);
  if (controller) controller.abort();
  const mine = ++round;
  controller = abortable();
  try {
    const { status, text, now } = await request(`${path}/parts${query()}`, { cache: 'no-store' }, controller);
    if (status !== 200 && status !== 204) throw new Error(`status ${status}`);
    if (mine !== round) return;
    if (text) apply(JSON.parse(text));
    else setTime(Number(now) || serverNow());
    hear();
  } catch {
    if (mine !== round) return;
    failures++;
    if (failures > 1 && !stream) setCutOff(true);
  }
  // Also after a failure: the stream may get through where requests do not.
  if (!stream && !document.hidden && elapsed() >= streamAfter) connect();
  else if (!stream) later();
}

// What slept, or was kept aside, may be old, and so may its connection.
function wake() {
  close();
  streamAfter = 0;
  refresh();
}

function rouse() {
  if (!check()) wake();
}

async function copy(button) {
  const { copy: text, from } = button.dataset;
  const isCopied = await write(text, find(`#${from}`));
  announce(isCopied ? texts.copiedText.replace('{text}', () => text) : texts.notCopied);
  if (!button.dataset.label) button.dataset.label = button.textContent;
  button.textContent = isCopied ? texts.copied : texts.selected;
  clearTimeout(button.timer);
  button.timer = setTimeout(() => {
    button.textContent = button.dataset.label;
    // The page must not go on holding an amount or address that is no longer to be paid.
    announce('');
  }, COPIED_MS);
}

// Pages that are not served by HTTPS have no clipboard, so there the shown string is selected and copied as it stands.
async function write(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const selection = getSelection();
    selection.selectAllChildren(element);
    return selection.toString() === text && document.execCommand('copy');
  }
}

// A form is answered by the whole page, of which only the answer is put here.
async function ask(form, entered = new FormData(form)) {
  // A button that is disabled meanwhile would lose the focus.
  if (form.hasAttribute('aria-busy')) return;
  form.setAttribute('aria-busy', 'true');
  form.unanswered = undefined;
  const { name } = form.elements[0];
  const answer = find(`#${name}-answer`);
  const { status } = shown;
  answer.textContent = texts.searching;
  try {
    const { text } = await request(form.action, { method: 'POST', body: new URLSearchParams(entered) });
    // Its style has the nonce of another answer, of which browsers complain.
    const page = new DOMParser().parseFromString(text.replace(/<style.*?<\/style>/s, ''), 'text/html');
    if (shown.status !== status) {
      // It was asked before what the page says now.
      form.removeAttribute('aria-busy');
      return ask(form, entered);
    }
    put(answer, find(`#${answer.id}`, page).childNodes);
    enhance(answer);
    if (find('[data-may-send]', answer)) mayTryAgain(entered.get(name));
  } catch {
    // The fee and the address are also asked for before anything is paid, so nothing is said of a payment.
    if (name !== 'transaction') form.unanswered = entered;
    answer.textContent = form.unanswered ? texts.noConnection : texts.notAnswered;
  }
  form.removeAttribute('aria-busy');
}

// Wallets that announced themselves (TIP-6963), each with the method by which its owner lets a page in (TIP-1193).
const announced = [];
const MAX_ANNOUNCED = 16;
function hearWallet({ detail }) {
  if (detail && detail.provider && announced.length < MAX_ANNOUNCED) {
    announced.push([detail.provider, 'eth_requestAccounts']);
  }
  offerWallet();
}

const accountOf = (web) => web && web.defaultAddress && web.defaultAddress.base58;

// The wallet in this page: one that has let it in, else the first of those that are at home in a browser of their own.
function wallet() {
  const { okxwallet, trustwallet, bybitWallet, binancew3w, tronLink, tron, tronWeb } = window;
  const asTronLink = (provider) => [provider, 'tron_requestAccounts'];
  const found = [
    ...[okxwallet, trustwallet, bybitWallet].map((own) => asTronLink(own && own.tronLink)),
    // It signs, but asks no node: that takes the TronWeb of the page.
    asTronLink(tronWeb && binancew3w && binancew3w.tron),
    ...announced,
    asTronLink(tronLink),
    [tron, 'eth_requestAccounts'],
    asTronLink(tronWeb && { tronWeb }),
  ].filter(([provider]) => provider && (provider.tronWeb || provider.request || provider.getAccount));
  return found.find(([provider]) => accountOf(provider.tronWeb)) || found[0];
}

// What it takes to send: who asks the nodes, whose money it is, and who signs.
async function openWallet() {
  const [provider, method] = wallet();
  if (provider.getAccount && !provider.tronWeb) {
    const { address } = await byOwner(provider.getAccount());
    if (!address) throw 'silent';
    return { web: window.tronWeb, from: address, sign: (transaction) => provider.signTransaction(transaction) };
  }
  const tronWeb = () => provider.tronWeb || window.tronWeb;
  if (!accountOf(tronWeb())) {
    const answer = await byOwner(provider.request({ method }));
    if (answer && answer.code === 4001) throw 'declined';
    // A locked TronLink answers with an empty text at once.
    if (!accountOf(tronWeb())) throw 'silent';
  }
  const web = tronWeb();
  return { web, from: web.defaultAddress.base58, sign: (transaction) => web.trx.sign(transaction) };
}

// Wallets say in many ways that their owner refused; what else fails there is no refusal.
async function byOwner(promise) {
  try {
    return await promise;
  } catch (error) {
    const { code, message = error } = error || {};
    throw code === 4001 || /declin|reject|cancel|denied/i.test(message) ? 'declined' : error;
  }
}

// What a wallet did in this tab, and with which transaction: neither a reload nor another language forgets.
let told = {};
// No block takes a transaction after its time. By then the page has long found one that a block took.
const GONE_MS = 5 * MINUTE_MS;
function recall() {
  const { outcome, txId, until } = attempt(() => JSON.parse(sessionStorage.getItem(path))) || told;
  // A page that is blind, or waits for a payment to reappear, is in neither of these states.
  const isGone = !cover && /^(waiting|expired)$/.test(invoice.dataset.state) && serverNow() - until > GONE_MS;
  return { outcome: isGone && outcome === 'sent' ? 'unknown' : outcome, txId };
}

function keep(outcome, txId, until) {
  told = { outcome, txId, until };
  // Where the browser keeps nothing, only this page remembers.
  attempt(() => sessionStorage.setItem(path, JSON.stringify(told)));
}

function offerWallet() {
  const box = find('[data-wallet]');
  if (!box) return;
  box.hidden = !wallet();
  const { outcome, txId } = recall();
  const { textContent: text, dataset } = find('[role=status]', box);
  // What was sent can still turn out to be gone.
  if (text && (outcome !== 'unknown' || text !== dataset.sent)) return;
  if (outcome in OUTCOMES) tellOutcome(box, outcome, txId);
}

// Whether the button stays off.
const OUTCOMES = {
  wait: true,
  sent: true,
  unknown: false,
  refused: false,
  declined: false,
  other: false,
  poor: false,
  energy: false,
  silent: false,
};
// Before anything was signed.
const REASONS = ['declined', 'other', 'poor', 'energy', 'silent'];

function tellOutcome(box, outcome, txId) {
  const line = find('[role=status]', box);
  line.textContent = line.dataset[outcome];
  find('button', box).disabled = OUTCOMES[outcome];
  // If it fails on the chain, looking it up says why.
  if (txId) find('#transaction-field').value = txId;
}

// Once its failure is final. `asked`: its id, or a link to it.
function mayTryAgain(asked) {
  if (!asked.includes(recall().txId)) return;
  keep();
  const box = find('[data-wallet]');
  if (box) tellOutcome(box);
}

// Of a node that looked at the transaction and did not take it. Whatever else comes back, it may be under way.
const REFUSALS =
  /^(SIGERROR|CONTRACT_VALIDATE_ERROR|CONTRACT_EXE_ERROR|BANDWITH_ERROR|TAPOS_ERROR|TOO_BIG_TRANSACTION_ERROR|TRANSACTION_EXPIRATION_ERROR)$/;

// What would fail on the chain is not sent, for it costs the fee all the same: there is too little USDT, or too little TRX for the fee.
async function tryOut({ web, from }, { contract, micro }, call) {
  const builder = web.transactionBuilder;
  // Some TronWebs throw what others give back.
  const trial = await builder.triggerConstantContract(...call()).catch((error) => ({ error, result: {} }));
  const [failure] = (trial.transaction && trial.transaction.ret) || [];
  if (!trial.result.result || (failure && failure.ret === 'FAILED')) {
    const owner = [{ type: 'address', value: from }];
    const held = await builder.triggerConstantContract(contract, 'balanceOf(address)', {}, owner, from);
    throw Number.parseInt(held.constant_result[0], 16) < Number(micro) ? 'poor' : trial;
  }
  const [{ EnergyLimit = 0, EnergyUsed = 0 }, sun] = await Promise.all([
    web.trx.getAccountResources(from),
    web.trx.getUnconfirmedBalance(from),
  ]).catch(() => [{}, Number.POSITIVE_INFINITY]);
  const price = find('[data-energy-sun]');
  // Where the price of energy is not known, at least some TRX.
  const energySun = price ? Number(price.dataset.energySun) : 1;
  if (sun < (trial.energy_used - EnergyLimit + EnergyUsed) * energySun) throw 'energy';
}

// How often its owner asked to pay. Only the newest try may send: an older one that its wallet answers late sends nothing.
let tries = 0;

// One transfer of exactly this amount, which the wallet shows and its owner confirms. Nothing else is ever asked of it.
async function payWithWallet(box) {
  const { contract, to, micro, genesis } = box.dataset;
  const before = recall();
  // On another page of this tab, to which its owner then went back.
  if (before.outcome === 'sent') {
    tellOutcome(box, 'sent', before.txId);
    return;
  }
  let outcome = 'refused';
  let txId;
  let until;
  const mine = ++tries;
  tellOutcome(box, 'wait');
  const silence = setTimeout(() => tellOutcome(box, txId ? 'unknown' : 'silent', txId), WALLET_MS);
  try {
    const opened = await openWallet();
    const { web, from, sign } = opened;
    const { blockID } = await web.trx.getBlockByNumber(0);
    if (blockID !== genesis) throw 'other';
    // Anew each time, for older TronWebs write into the options.
    const call = () => [
      contract,
      'transfer(address,uint256)',
      { feeLimit: 100_000_000 },
      [
        { type: 'address', value: to },
        { type: 'uint256', value: micro },
      ],
      from,
    ];
    await tryOut(opened, box.dataset, call);
    const { transaction } = await web.transactionBuilder.triggerSmartContract(...call());
    stillWanted(box, mine);
    const signed = await byOwner(sign(transaction));
    stillWanted(box, mine);
    txId = signed.txID;
    until = (signed.raw_data || {}).expiration;
    // From here on it may be under way, whatever comes back, or nothing.
    outcome = 'unknown';
    keep(outcome, txId, until);
    const { result, code } = await web.trx.sendRawTransaction(signed);
    if (result || code === 'DUP_TRANSACTION_ERROR') outcome = 'sent';
    else if (REFUSALS.test(code)) outcome = 'refused';
  } catch (error) {
    // Else the outcome says how far it came.
    if (!txId && REASONS.includes(error)) outcome = error;
  }
  clearTimeout(silence);
  if (mine !== tries && outcome !== 'sent') return;
  // An earlier try may be under way still.
  if (before.outcome === 'unknown' && outcome !== 'sent' && outcome !== 'other') ({ outcome, txId } = before);
  if (txId) keep(outcome, txId, until);
  tellOutcome(box, outcome, txId);
}

// While the wallet asked its owner, the page may have found another payment, or heard nothing more.
function stillWanted(box, mine) {
  check();
  if (!box.isConnected || cover || mine !== tries || recall().outcome === 'sent') throw new Error('not wanted now');
}

document.addEventListener('click', ({ target }) => {
  // Who taps the code has no other device to scan it with; its button is the same for keyboards.
  const button = target.closest('.qr') ? find('[data-from=address]') : target.closest('button');
  if (!button || (invoice && check())) return;
  if (button.dataset.copy) copy(button);
  else if ('print' in button.dataset) print();
  else if (button.closest('[data-wallet]')) payWithWallet(button.closest('[data-wallet]'));
});
document.addEventListener('submit', (event) => {
  // Without one of these the browser sends the form and shows the whole page.
  if (!attempt(() => fetch && DOMParser && FormData && URLSearchParams)) return;
  event.preventDefault();
  ask(event.target);
});
// A key that is pressed in the frame is not heard by the dialog around it.
document.addEventListener('keydown', ({ key }) => {
  if (isFramed && key === 'Escape') parent.postMessage({ close: true }, '*');
});
enhance(document.body);
tellShop();
// The shop asks after each load of the frame whether the page is there.
addEventListener('message', tellShop);
if (invoice) {
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) return rouse();
    // A browser has six connections to a server, and a stream takes one of them.
    close();
    later();
  });
  addEventListener('pagehide', close);
  addEventListener('pageshow', (event) => {
    if (event.persisted) rouse();
  });
  addEventListener('online', rouse);
  addEventListener('offline', () => setCutOff(true));
  addEventListener('tronLink#initialized', offerWallet);
  addEventListener('TIP6963:announceProvider', hearWallet);
  attempt(() => dispatchEvent(new Event('TIP6963:requestProvider')));
  setTime(Number(invoice.dataset.now));
  sayConnection();
  tick();
  setInterval(tick, CLOCK_MS);
  setInterval(check, CHECK_MS);
  connect();
}
