import { keyMode, type Network } from '../domain/network.ts';
import { CliError } from './cli-error.ts';

/** The URL as it will be called. Its query may hold a token of the receiver, so no message repeats it. Errors: `INVALID_ARGUMENT`. */
export function readWebhookUrl(text: string, network: Network): string {
  const refuse = (reason: string) => new CliError('INVALID_ARGUMENT', `--url ${reason}; the endpoint was not added`);
  const url = URL.canParse(text) && /^https?:\/\/[^/\\\s]/i.test(text) ? new URL(text) : null;
  if (url === null)
    throw refuse('is not an http:// or https:// URL: write for example https://shop.example.com/webhooks');
  const shown = JSON.stringify(url.origin);
  if (url.username !== '' || url.password !== '') throw refuse(`(${shown}) holds a user name or password: remove it`);
  if (url.hash !== '')
    throw refuse(`(${shown}) has a fragment, which is never sent: remove everything from the "#" on`);
  if (url.protocol === 'http:' && keyMode(network) === 'live') {
    throw refuse(`(${shown}) must start with https://, for this is a project on ${network} with real money`);
  }
  if (url.href.length > MAX_URL_LENGTH) throw refuse(`has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  return url.href;
}

/** The bound of the schema. */
const MAX_URL_LENGTH = 2048;
