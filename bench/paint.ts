import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchChromiumIn } from '../test/support/launch-chromium.ts';
import { LOGOS } from '../test/support/logos.ts';
import type { BenchContext, BenchResult } from './bench-context.ts';
import { type BenchChain, createChain, startMining } from './checkout/chain.ts';
import { startScript, startService } from './child.ts';
import { type Target, table } from './targets.ts';

type Browser = Awaited<ReturnType<typeof launchChromiumIn>>;
type Plan = { loads: number };
const DEFAULT: Plan = { loads: 30 };
const QUICK: Plan = { loads: 5 };

/** Requests for each document without a browser, so that the servers reach full speed, and rounds that don't count. */
const WARM_UP = { requests: 50, rounds: 3 };

/** The pages to open, in turn. The baseline is a static document from a bare server. */
const SUBJECTS = ['page, en', 'page, ar', 'baseline'] as const;
type Subject = (typeof SUBJECTS)[number];

/** Milliseconds from the start of the navigation, and bytes including headers. */
type Load = { responseEnd: number; firstPaint: number; bytes: number };

const LIMIT_MS = 100;

/**
 * Measures the first contentful paint of the payer's page in a browser without a cache, compared with a bare document. Takes about a
 * minute.
 */
export async function runPaint(context: BenchContext): Promise<BenchResult> {
  const plan = context.flags.quick ? QUICK : DEFAULT;
  const browser = await startBrowser(context);
  const chain = await createChain(context.postgres, { waiting: 1, confirming: 0 });
  await addBrand(chain);
  const mining = startMining(chain);
  try {
    const urls = await startServers(context, chain);
    await warmUp(Object.values(urls));
    const loads = await measure(browser, urls, plan, context.onProgress);
    const targets = judge(loads);
    return { markdown: show(loads), targets, record: { plan, loads } };
  } finally {
    await mining.stop();
    await chain.client.end();
  }
}

async function startBrowser({ onStart, onProgress }: BenchContext): Promise<Browser> {
  const folder = await mkdtemp(join(tmpdir(), 'quittance-bench-'));
  onStart({ stop: () => rm(folder, { recursive: true, force: true }) });
  onProgress('unpacking the browser');
  const browser = await launchChromiumIn(folder);
  onStart({ stop: () => browser.close() });
  return browser;
}

/** Every option that a merchant can set. */
async function addBrand({ client }: BenchChain): Promise<void> {
  const logoId = '0123456789abcdef0123456789abcdef';
  await client.query("insert into logos (id, type, content) values ($1, 'image/png', $2)", [logoId, LOGOS.png]);
  await client.query('update projects set support_contact = $1, return_url = $2, accent = $3, logo_id = $4', [
    'help@shop.example',
    'https://shop.example/orders/1',
    '#7a1fa2',
    logoId,
  ]);
}

async function startServers(
  { command, onStart }: BenchContext,
  { connection, waiting }: BenchChain,
): Promise<Record<Subject, string>> {
  const service = await startService(command, connection);
  onStart(service);
  const [baseline, { url }] = await startScript<{ url: string }>('./paint-server.ts', {});
  onStart(baseline);
  const page = `${service.url}/c/${waiting[0]?.token}`;
  return { 'page, en': `${page}?lang=en`, 'page, ar': `${page}?lang=ar`, baseline: url };
}

async function warmUp(urls: readonly string[]): Promise<void> {
  for (let request = 0; request < WARM_UP.requests; request++) {
    for (const url of urls) await (await fetch(url)).arrayBuffer();
  }
}

/** Loads each page once in turn, in reverse order in every other round. */
async function measure(
  browser: Browser,
  urls: Record<Subject, string>,
  { loads }: Plan,
  onProgress: (text: string) => void,
): Promise<Record<Subject, Load[]>> {
  const shop = new URL(urls.baseline);
  shop.hostname = 'localhost';
  const all: Record<Subject, Load[]> = { 'page, en': [], 'page, ar': [], baseline: [] };
  const rounds = WARM_UP.rounds + loads;
  for (let round = 1; round <= rounds; round++) {
    for (const subject of round % 2 === 0 ? SUBJECTS : SUBJECTS.toReversed()) {
      const load = await open(browser, shop.href, urls[subject]);
      if (round > WARM_UP.rounds) all[subject].push(load);
    }
    if (round % 10 === 0) onProgress(`${round} of ${rounds} rounds`);
  }
  return all;
}

/**
 * Arrives as payers do: by a link on a page of another site, with an empty cache and no connection. (From an empty page, the browser would
 * continue in the same process, except for documents with a Cross-Origin-Opener-Policy.)
 */
async function open(browser: Browser, shopUrl: string, url: string): Promise<Load> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  try {
    const page = await context.newPage();
    await page.goto(shopUrl);
    await page.evaluate(`document.body.innerHTML = '<a href="${url}">Pay</a>'`);
    await Promise.all([page.waitForURL(url), page.click('a')]);
    const { status, ...load } = await page.evaluate<Load & { status: number }>(READ);
    if (status !== 200) throw new Error(`${url} answered ${status}`);
    return load;
  } finally {
    await context.close();
  }
}

/** A string, because it runs in the page. The paint may come after the load. */
const READ = `new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error('nothing was painted within 10 s')), 10_000);
  new PerformanceObserver((list) => {
    const [paint] = list.getEntriesByName('first-contentful-paint');
    const [{ responseStatus, responseEnd, transferSize }] = performance.getEntriesByType('navigation');
    if (paint) resolve({ status: responseStatus, responseEnd, firstPaint: paint.startTime, bytes: transferSize });
  }).observe({ type: 'paint', buffered: true });
})`;

function judge(loads: Record<Subject, Load[]>): Target[] {
  return SUBJECTS.filter((subject) => subject !== 'baseline').map((subject) => {
    const measured = quantile(loads[subject], 'firstPaint', 0.5);
    const name = `first contentful paint of the ${subject}, median ms`;
    return { name, reach: `< ${LIMIT_MS}`, measured, isReached: measured < LIMIT_MS };
  });
}

/** The tables in Markdown, as in docs/contributing/measurements/first-paint.md. */
function show(loads: Record<Subject, Load[]>): string {
  const rows = SUBJECTS.map((subject) => {
    const of = (field: keyof Load) =>
      [0.5, 0.9].map((part) => quantile(loads[subject], field, part).toFixed(1)).join(' / ');
    const ratio = quantile(loads[subject], 'firstPaint', 0.5) / quantile(loads.baseline, 'firstPaint', 0.5);
    return [subject, of('responseEnd'), of('firstPaint'), ratio.toFixed(2), quantile(loads[subject], 'bytes', 0.5)];
  });
  return [table(['median / p90', 'response end ms', 'first paint ms', 'of the baseline', 'bytes'], rows)].join('\n\n');
}

/** Returns the smallest value that at least this share of the values doesn't exceed. */
function quantile(loads: readonly Load[], field: keyof Load, part: number): number {
  const sorted = loads.map((load) => load[field]).toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Number.NaN;
}
