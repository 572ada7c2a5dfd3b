import { keyMode, type Network } from '../domain/network.ts';
import { checkTarget } from '../webhooks/target.ts';
import { CliError } from './cli-error.ts';
import { secretProblem } from './secret-problem.ts';

/**
 * The URL as it will be called; what would never be delivered to is refused at once. `localTargets` is whether this machine
 * lets test networks use http and loopback. The query may hold a token of the receiver, so no message repeats it. Errors:
 * `INVALID_ARGUMENT`.
 */
export function readWebhookUrl(text: string, options: { network: Network; localTargets: boolean }): string {
  if (OUR_SECRET.test(text)) {
    throw new CliError('INVALID_ARGUMENT', secretProblem('--url', 'a secret of Quittance').message);
  }
  const refuse = (reason: string) => new CliError('INVALID_ARGUMENT', `--url ${reason}; nothing was changed`);
  const url = URL.canParse(text) && /^https?:\/\/[^/\\\s]/i.test(text) ? new URL(text) : null;
  if (url === null)
    throw refuse('is not an http:// or https:// URL: write for example https://shop.example.com/webhooks');
  if (url.href.length > MAX_URL_LENGTH) throw refuse(`has ${url.href.length} characters: at most ${MAX_URL_LENGTH}`);
  if (url.hash !== '') {
    const shown = JSON.stringify(url.origin);
    throw refuse(`(${shown}) has a fragment, which is never sent: remove everything from the "#" on`);
  }
  const isTest = keyMode(options.network) === 'test';
  const check = checkTarget(url, isTest && options.localTargets ? 'local' : 'public');
  if (check.kind === 'ok') return url.href;
  const wouldHelp = isTest && checkTarget(url, 'local').kind === 'ok';
  throw refuse(wouldHelp ? `${check.reason}; ${HOW_TO_ALLOW}` : check.reason);
}

/** A token of the receiver may stand in the URL, which is shown in lists; ours has no business there. */
const OUR_SECRET = /whsec_|qt_(?:live|test)_/;
/** The bound of the schema. */
const MAX_URL_LENGTH = 2048;
const HOW_TO_ALLOW =
  'QUITTANCE_WEBHOOK_LOCAL_TARGETS=allow lets projects on a test network use http and this machine as well';
