// Keeps the payer's page up to date and copies exactly the shown strings. Without it the page works by its "Check now" link.
const POLL_MS = 3000;
const path = document.body.dataset.path;

function enhance() {
  for (const button of document.querySelectorAll('button[data-copy]')) button.hidden = !navigator.clipboard;
  const deadline = document.getElementById('deadline');
  if (deadline) deadline.textContent = new Date(deadline.dateTime).toLocaleString();
}

async function copy(button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Not copied: select the text instead';
  }
  setTimeout(() => {
    button.textContent = label;
  }, 2000);
}

async function refresh() {
  const current = document.getElementById('invoice');
  const response = await fetch(`${path}/fragment`, { cache: 'no-store' });
  if (!response.ok) return;
  const next = new DOMParser().parseFromString(await response.text(), 'text/html').getElementById('invoice');
  // Only a change replaces anything, so a screen reader hears each state once and a selection is not lost.
  const same = next.dataset.state === current.dataset.state && next.dataset.blind === current.dataset.blind;
  if (same) return;
  const heading = current.querySelector('#state');
  const text = next.querySelector('#state').textContent;
  // The live region stays in place and only its text changes: that is what screen readers announce.
  next.querySelector('#state').replaceWith(heading);
  current.replaceWith(next);
  heading.textContent = text;
  document.title = text;
  enhance();
}

async function poll() {
  try {
    await refresh();
  } catch {
    // Offline: the next round tries again.
  }
  if (document.getElementById('invoice').dataset.state !== 'paid') setTimeout(poll, POLL_MS);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-copy]');
  if (button) copy(button);
});
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refresh().catch(() => undefined);
});
enhance();
setTimeout(poll, POLL_MS);
