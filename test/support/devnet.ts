import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Devnet, type DevnetOptions, startDevnet } from '@quittance/devnet';
import { createPayer, type Payer } from '@quittance/devnet/payer';
import { request } from 'undici';
import { onTestFinished } from 'vitest';

/** 2026-01-01T00:00:00Z. A fixed start makes every block id of a test repeatable. */
const GENESIS_MS = 1_767_225_600_000;

/** Starts a devnet that only makes blocks on demand and stops with the test. */
export async function startTestDevnet(options: Partial<DevnetOptions> = {}): Promise<Devnet> {
  const devnet = await startDevnet({ dataDir: null, blockMs: 0, genesisTimestampMs: GENESIS_MS, ...options });
  onTestFinished(() => devnet.stop());
  return devnet;
}

/** Returns a wallet with everything that the devnet's payer owns. */
export function payerOf(devnet: Devnet): Payer {
  return createPayer({ nodeUrl: devnet.url, solidityUrl: devnet.solidityUrl, privateKey: devnet.payer.privateKey });
}

/** Returns a devnet's contracts in the form of scenarios. */
export function contractsOf(devnet: Devnet) {
  return { usdt: devnet.usdtContract, fakeUsdt: devnet.fakeUsdtContract, multisend: devnet.multisendContract };
}

/** Creates a directory that is removed after the test. */
export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'quittance-devnet-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** POSTs to a node and returns its answer, whatever that is. */
export async function askNodeText(url: string, path: string, body: object = {}) {
  const headers = { 'content-type': 'application/json' };
  const { statusCode, body: answer } = await request(url + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  return { status: statusCode, text: await answer.text() };
}

/** POSTs to a node and returns its JSON, in the shape the caller expects. */
export async function askNode<Answer>(url: string, path: string, body: object = {}): Promise<Answer> {
  const { text } = await askNodeText(url, path, body);
  return JSON.parse(text) as Answer;
}
