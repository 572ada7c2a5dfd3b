import { contactProblem, readEmbedOrigins, readReturnUrl } from '../../../core/domain/brand/brand.ts';
import { parseColour } from '../../../core/domain/brand/colour.ts';
import { MAX_LOGO_BYTES, readLogo } from '../../../core/domain/brand/logo.ts';
import type { ExpectedOrders } from '../../../core/domain/capacity.ts';
import type { FieldProblem } from '../../../core/domain/errors.ts';
import { say, type Text } from '../../../core/domain/message.ts';
import { formatAmount, type MicroUsdt, parseAmount } from '../../../core/domain/money.ts';
import { keyMode, NETWORKS, type Network } from '../../../core/domain/network.ts';
import { POLICIES, type Policy, surchargeOf } from '../../../core/domain/policy.ts';
import type { Static, Type } from '../../../core/runtime/type.ts';
import type { Logo } from '../../../core/store/ledger/logos.ts';
import type { ProjectSettings } from '../../../core/store/ledger/projects.ts';
import { clip, detectSecret, detectSecretInNote, fieldProblem, nameProblem } from '../input/problems.ts';
import { parseDuration } from '../input/readers.ts';
import type { Given } from '../operation.ts';
import { file, line, maybeOneOf, needed, removable } from '../option.ts';

const NAME = ['<name>', 'shop name, which payers see: 1 to 100 characters'] as const;
const LIFETIME = ['<duration>', 'time that payers have to pay an invoice: 5m to 30d'] as const;
const policy = (usual: { default?: string }) =>
  maybeOneOf(
    POLICIES,
    '<policy>',
    'payment matching: tail, tail-4 and tail-3 add digits to the amount, up to the 6th, 4th or 3rd decimal; exact uses a separate address for each invoice with the same amount',
    usual,
  );
const maxSurcharge = () =>
  line(
    '<usdt>',
    'surcharge limit for tail policies: tails are smaller than this (default: 0.01; for tail-4 and tail-3, 0.1)',
  );
const limits = (most: { default?: string }, mostPerMinute: { default?: string }) => ({
  maxUnpaid: line(
    '<n>',
    'maximum unpaid invoices in 30 minutes, or none; limits how many amounts fake orders can use up',
    most,
  ),
  maxUnpaidPerMinute: line('<n>', 'maximum unpaid invoices in one minute, or none', mostPerMinute),
});
/** The parts of a project that are visible to payers. */
const look = (isRemovable: boolean) => ({
  support: removable(
    '<contact>',
    'support contact for payers: an e-mail address, an https:// link, or text such as a Telegram name',
    isRemovable,
  ),
  returnUrl: removable(
    '<url>',
    'link back to the shop for payers, beginning with https://; {invoiceId} is replaced by the invoice id',
    isRemovable,
  ),
  embedOrigins: removable(
    '<sites>',
    'sites that may embed the checkout in a frame, such as https://shop.example: at most 5, comma-separated',
    isRemovable,
  ),
  accent: removable(
    '<colour>',
    'colour of buttons and links, such as 0a6549; adjusted if text would be hard to read',
    isRemovable,
  ),
  logo: file('<file>', 'a PNG, JPEG or WebP of at most 32 KiB, each side 16 to 1024 px', {
    ...{ wire: 'A PNG, JPEG or WebP of at most 32 KiB, in base64', of: 'a PNG, JPEG or WebP' },
    ...{ mostBytes: MAX_LOGO_BYTES, isRemovable },
  }),
});
export const settings = {
  ...{ name: line(...NAME), policy: policy({}), maxSurcharge: maxSurcharge(), lifetime: line(...LIFETIME) },
  ...{ ...limits({}, {}), ...look(true) },
};

const expected = {
  ordersPerDay: line('<n>', 'expected orders per day, paid and unpaid, to calculate how many addresses you need'),
  prices: line('<n>', 'number of different amounts, used about equally often (default: 1)'),
};
export const newProject = {
  name: needed(...NAME),
  network: needed('<network>', NETWORKS.join(', ').replace(/, (?=\w+$)/, ' or ')),
  ...{ policy: policy({ default: 'tail' }), maxSurcharge: maxSurcharge() },
  lifetime: needed(...LIFETIME, { default: '30m' }),
  ...{ ...limits({ default: '600' }, { default: '120' }), ...expected },
  ...look(false),
};

/** Settings as the user types them. An omitted setting stays unchanged; `null` removes it. */
export type SettingsInput = Partial<Given<Static<ReturnType<typeof Type.Object<typeof settings>>>>>;

/** The settings to change. The logo isn't stored yet. */
export type WantedSettings = Partial<Omit<ProjectSettings, 'logoId'>> & { logo?: Logo | null };

/** The limits that the database schema sets. */
const LIFETIME_MS = { least: 300_000, most: 30 * 86_400_000 };
const MAX_COUNT = 1_000_000;

/** The settings that every project has. */
type Needed = Pick<ProjectSettings, 'name' | 'invoiceLifetimeMs'>;
type NeededInput = { name: string; lifetime: string };

/** Reads the given settings. Adds problems to `problems`. The caller must not use the value of a wrong setting. */
export function readSettings(input: SettingsInput & NeededInput, problems: FieldProblem[]): WantedSettings & Needed;
export function readSettings(input: SettingsInput, problems: FieldProblem[]): WantedSettings;
export function readSettings(input: SettingsInput, problems: FieldProblem[]): WantedSettings {
  const settings: WantedSettings = {};
  const { name, policy, maxSurcharge, lifetime, support, returnUrl, embedOrigins, accent, logo } = input;
  const add = (field: keyof SettingsInput, reason: Text | null) => {
    if (reason !== null) problems.push(fieldProblem(field, reason));
  };
  if (name !== undefined) {
    settings.name = name.trim();
    add('name', nameProblem(settings.name));
  }
  if (policy !== undefined) settings.policy = policy;
  if (maxSurcharge !== undefined) {
    const parsed = parseAmount(maxSurcharge);
    settings.maxSurchargeMicro = parsed.kind === 'ok' ? parsed.amountMicro : 0n;
    // For an existing project the policy isn't known yet, and is checked later.
    const { leastMicro, mostMicro } = surchargeOf(policy ?? 'tail');
    if (settings.maxSurchargeMicro < leastMicro || settings.maxSurchargeMicro > mostMicro)
      add('maxSurcharge', describeSurcharge(maxSurcharge, policy));
  }
  if (lifetime !== undefined) {
    const lifetimeMs = parseDuration(lifetime) ?? 0;
    if (lifetimeMs < LIFETIME_MS.least || lifetimeMs > LIFETIME_MS.most)
      add('lifetime', `is ${clip(lifetime)}: use 5m to 30d, for example 30m, 12h or 2d`);
    settings.invoiceLifetimeMs = lifetimeMs;
  }
  for (const limit of ['maxUnpaid', 'maxUnpaidPerMinute'] as const) {
    const text = input[limit];
    if (text === undefined) continue;
    const count = text === 'none' ? null : readCount(text);
    if (text !== 'none' && count === null) add(limit, `is ${clip(text)}: use 1 to ${MAX_COUNT}, or none`);
    settings[limit] = count;
  }
  if (support !== undefined) {
    settings.supportContact = support === null ? null : support.trim();
    if (support !== null) add('support', secretIn(support, detectSecretInNote) ?? contactProblem(support.trim()));
  }
  if (returnUrl !== undefined) {
    const read = returnUrl === null ? null : readReturnUrl(returnUrl);
    settings.returnUrl = read?.kind === 'ok' ? read.url : null;
    if (returnUrl !== null)
      add('returnUrl', secretIn(returnUrl, detectSecret) ?? (read?.kind === 'refused' ? read.reason : null));
  }
  if (embedOrigins !== undefined) {
    const read = embedOrigins === null ? null : readEmbedOrigins(embedOrigins);
    settings.embedOrigins = read?.kind === 'ok' ? read.origins : null;
    if (embedOrigins !== null)
      add('embedOrigins', secretIn(embedOrigins, detectSecret) ?? (read?.kind === 'refused' ? read.reason : null));
  }
  if (accent !== undefined) {
    settings.accent = accent === null ? null : parseColour(accent);
    if (accent !== null && settings.accent === null)
      add(
        'accent',
        `is ${clip(accent)}: use 3 or 6 hexadecimal digits, as in 0a6549 or '#0a6549' (quote it, because a shell may treat # as a comment)`,
      );
  }
  if (logo !== undefined) {
    const content = logo === null || logo.unread !== undefined ? null : Buffer.from(logo.content, 'base64');
    const read = content === null ? { kind: 'refused' as const, reason: logo?.unread ?? '' } : readLogo(content);
    settings.logo = content !== null && read.kind === 'ok' ? { type: read.type, content } : null;
    if (logo !== null && read.kind === 'refused') add('logo', `${clip(logo.file)} ${read.reason}`);
  }
  return settings;
}

/** Explains why a surcharge limit isn't allowed, with the bounds of `policy`. */
export function describeSurcharge(given: string, policy: Policy = 'tail'): string {
  const { leastMicro, mostMicro, usualMicro } = surchargeOf(policy);
  const [least, most, usual] = [leastMicro, mostMicro, usualMicro].map(trimmedAmount);
  const where = policy === 'tail' ? '' : `with the policy ${policy} `;
  return `is ${clip(given)}: ${where}use ${least} to ${most} USDT, for example ${usual}`;
}

const trimmedAmount = (amountMicro: MicroUsdt) => formatAmount(amountMicro).replace(/\.?0+$/, '');

/** Reads a number from 1 to `MAX_COUNT`, or returns `null`. */
function readCount(text: string): number | null {
  const count = /^\d{1,7}$/.test(text) ? Number(text) : 0;
  return count < 1 || count > MAX_COUNT ? null : count;
}

function secretIn(text: string, spot: typeof detectSecret): Text | null {
  const kind = spot(text.trim());
  return kind === null ? null : say`: ${{ secret: kind }}`;
}

/** Finds links that can't work for a project on this network. */
export function linkProblems(wanted: WantedSettings, network: Network): FieldProblem[] {
  if (keyMode(network) === 'test') return [];
  const reason = 'works only on this machine, but the payers of a mainnet project are elsewhere: use https://';
  return (['returnUrl', 'embedOrigins'] as const)
    .filter((name) => /(?:^| )http:/.test(wanted[name] ?? ''))
    .map((name) => fieldProblem(name, reason));
}

/** `prices` is the number of different amounts. The default is 1, because a single amount needs the most addresses. */
type ExpectedInput = { [Name in keyof typeof expected]?: string | undefined };

export function readExpected({ ordersPerDay, prices }: ExpectedInput, problems: FieldProblem[]): ExpectedOrders | null {
  const read = (subject: keyof ExpectedInput, text: string) => {
    const count = readCount(text);
    if (count === null) problems.push(fieldProblem(subject, `is ${clip(text)}: use 1 to ${MAX_COUNT}`));
    return count ?? 1;
  };
  const orders = { perDay: read('ordersPerDay', ordersPerDay ?? '1'), prices: read('prices', prices ?? '1') };
  if (ordersPerDay !== undefined) return orders;
  if (prices !== undefined) problems.push(fieldProblem('prices', 'also requires the orders per day'));
  return null;
}
