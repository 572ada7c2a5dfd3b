// Runs as root in the bare Debian with the package's Node.js: starts the installed service, creates an invoice, pays it, and waits for the
// service's backup. Prints its observations as one JSON object.
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';

const seen = {};
const pause = () => new Promise((resolve) => setTimeout(resolve, 200));
const run = (...args) => execFileSync('quittance', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

seen.version = run('--version').trim();
const startedMs = performance.now();
const service = spawn('quittance', ['start'], { stdio: ['ignore', 'pipe', 'inherit'], cwd: '/root' });
const ended = new Promise((resolve) => service.once('exit', resolve));
const text = await new Promise((resolve, reject) => {
  let output = '';
  service.stdout.on('data', (chunk) => {
    output += chunk;
    if (output.includes('Ctrl-C stops everything')) resolve(output);
  });
  ended.then((code) => reject(new Error(`the service ended with ${code}: ${output}`)));
});
seen.startMs = Math.round(performance.now() - startedMs);
const [, baseUrl] = /curl -sS (http:\S+)\/v1\/invoices/.exec(text);
const [, apiKey] = /X-Api-Key: (\w+)/.exec(text);
seen.payCommand = / +(\S+) sandbox pay/.exec(text)[1];
seen.uid = statSync(`/proc/${service.pid}`).uid;
seen.executable = readFileSync(`/proc/${service.pid}/cmdline`, 'utf8').split('\0')[0];

const created = await fetch(`${baseUrl}/v1/invoices`, {
  method: 'POST',
  headers: { 'X-Api-Key': apiKey, 'Idempotency-Key': 'order-1', 'Content-Type': 'application/json' },
  body: JSON.stringify({ amount: '25.00', asset: 'USDT', network: 'TRON', externalId: 'order-1' }),
});
const invoice = await created.json();
seen.created = created.status;
run('sandbox', 'pay', 'order-1');
const deadlineMs = performance.now() + 120_000;
do {
  const answer = await fetch(`${baseUrl}/v1/invoices/${invoice.invoiceId}`, { headers: { 'X-Api-Key': apiKey } });
  seen.status = (await answer.json()).status;
  // Each read waits for the local network's next block.
  await pause();
} while (seen.status !== 'PAID' && performance.now() < deadlineMs);
seen.paidMs = Math.round(performance.now() - startedMs);
const hasBackup = () => readdirSync('/var/backups/quittance').some((name) => name.endsWith('.sha256'));
while (!hasBackup() && performance.now() < deadlineMs) await pause();
seen.backupMs = Math.round(performance.now() - startedMs);

service.kill('SIGTERM');
seen.exitCode = await ended;
console.log(JSON.stringify(seen));
