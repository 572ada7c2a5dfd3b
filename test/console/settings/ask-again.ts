import type { createAuthenticator } from '../../people/authenticator.ts';
import type { OpenConsole } from '../open-console.ts';

/** What a browser has: a session in its cookie. */
export const cookieOf = (token: string) => `__Host-quittance=${token}`;

type Page = { text: string };

/** The values of a form of a page that posts to a path; of several the one with a field of this name. */
export function formOf({ text }: Page, path: string, field = 'token'): Record<string, string> {
  const forms = text.split('<form ').filter((each) => each.includes(`action="${path}"`));
  const form = forms.find((each) => each.includes(`name="${field}"`))?.split('</form>')[0];
  if (form === undefined) throw new Error(`no form of the page posts ${field} to ${path}: ${text.slice(0, 2000)}`);
  const inputs = [...form.matchAll(/<input type="hidden" name="([\w.]+)" value="([^"]*)">/g)];
  return Object.fromEntries(inputs.map(([, name = '', value = '']) => [name, unescapeText(value)]));
}

/** What a page asks a passkey by. */
export function passkeyOptionsOf({ text }: Page): { challenge: string } {
  const [, options] = /data-options="([^"]+)"/.exec(text) ?? [];
  if (options === undefined) throw new Error(`the page asks no passkey: ${text.slice(0, 2000)}`);
  return JSON.parse(unescapeText(options));
}

function unescapeText(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}

type Browser = { ask: OpenConsole['ask']; cookie: string };

/** Opens a form, fills it in and sends it. The answer asks for a proof, where one is needed. */
export async function send({ ask, cookie }: Browser, path: string, filled: Record<string, string> = {}) {
  const page = await ask(path, { cookie });
  return ask(path, { cookie, form: { ...formOf(page, path), ...filled } });
}

/** The same, and proves by the code of an app who it is. */
export async function sendWithCode(browser: Browser, path: string, code: string, filled: Record<string, string> = {}) {
  const asked = await send(browser, path, filled);
  return browser.ask(path, { cookie: browser.cookie, form: { ...formOf(asked, path, 'code'), code } });
}

/** The same by a passkey; a form that is refused before it asks for one is answered as it is. */
export async function sendWithPasskey(
  browser: Browser,
  path: string,
  key: ReturnType<typeof createAuthenticator>,
  filled: Record<string, string> = {},
) {
  const asked = await send(browser, path, filled);
  if (!asked.text.includes('Confirm this change')) return asked;
  const passkey = JSON.stringify(key.sign(passkeyOptionsOf(asked)));
  return browser.ask(path, { cookie: browser.cookie, form: { ...formOf(asked, path, 'passkey'), passkey } });
}
