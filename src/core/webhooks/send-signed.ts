import type { Network } from '../domain/network.ts';
import type { SendResult, WebhookSender } from './send.ts';
import { signWebhook } from './sign.ts';
import { targetRule } from './target.ts';

/** `localTargets`: whether webhooks of projects on test networks may be sent to this machine, and over http. */
export type SendDeps = { sender: WebhookSender; localTargets: boolean };

/** Signs a webhook with each of its secrets (`whsec_…`) and sends it once. `id` is `evt_…`. Throws the errors of `signWebhook`. */
export async function sendSigned(
  { sender, localTargets }: SendDeps,
  webhook: {
    url: string;
    network: Network;
    id: string;
    body: Buffer;
    secrets: readonly string[];
    refuse?: (answer: Uint8Array) => string | null;
  },
  nowMs: number,
): Promise<SendResult> {
  const { url, network, id, body, secrets, refuse } = webhook;
  const headers = signWebhook({ id, timestampSeconds: Math.floor(nowMs / 1000), body, secrets });
  return sender.send({
    url,
    rule: targetRule(network, localTargets),
    headers,
    body,
    nowMs,
    ...(refuse && { refuse }),
  });
}
