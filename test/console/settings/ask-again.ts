import type { createAuthenticator } from '../../people/authenticator.ts';
import type { OpenConsole } from '../open-console.ts';

/** A browser's cookie with a session. */
export const cookieOf = (token: string) => `__Host-quittance=${token}`;

type Page = { text: string };

/** Returns the values of a page's form that posts to a path. If there are several, the one with this field. */
export function formOf({ text }: Page, path: string, field = 'token'): Record<string, string> {
  const forms = text.split('<form ').filter((each) => each.includes(`action="${path}"`));
  const form = forms.find((each) => each.includes(`name="${field}"`))?.split('</form>')[0];
  if (form === undefined) throw new Error(`no form of the page posts ${field} to ${path}: ${text.slice(0, 2000)}`);
  const inputs = [...form.matchAll(/<input type="hidden" name="([\w.]+)" value="([^"]*)">/g)];
  return Object.fromEntries(inputs.map(([, name = '', value = '']) => [name, unescapeText(value)]));
}

/** Returns the options with which a page asks for a passkey. */
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

/** Opens, fills in and submits a form. The answer asks for a proof of identity if one is required. */
export async function send({ ask, cookie }: Browser, path: string, filled: Record<string, string> = {}) {
  const page = await ask(path, { cookie });
  return ask(path, { cookie, form: { ...formOf(page, path), ...filled } });
}

/** Does the same, and proves the identity with an app's code. */
export async function sendWithCode(browser: Browser, path: string, code: string, filled: Record<string, string> = {}) {
  const asked = await send(browser, path, filled);
  return browser.ask(path, { cookie: browser.cookie, form: { ...formOf(asked, path, 'code'), code } });
}

/** Does the same with a passkey. Returns the answer unchanged if the form is refused before it asks for one. */
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
