import { MAX_LOGO_BYTES } from '../../domain/brand/logo.ts';
import type { ProjectView } from '../../operator/subjects/projects.ts';
import { html } from '../../web/html.ts';
import type { FormField } from '../forms/form.ts';
import type { Fields } from '../page/read-fields.ts';

/** What payers see. */
export function lookFields({
  name,
  supportContact,
  returnUrl,
  embedOrigins,
  accent,
  logoId,
}: ProjectView): FormField[] {
  return [
    { ...line('name'), value: name, more: html` required` },
    {
      ...{ ...line('support'), value: supportContact ?? undefined },
      hint: 'An e-mail address, an https:// link, or words such as a Telegram name. Empty: none.',
    },
    {
      ...line('returnUrl'),
      value: returnUrl ?? undefined,
      hint: 'An https:// link to the shop. {invoiceId} in it becomes the id of the invoice. Empty: none.',
    },
    {
      ...{ ...line('embedOrigins'), value: embedOrigins ?? undefined },
      hint: 'Sites such as https://shop.example, at most five. Empty: none, and no site can lay anything over the page.',
    },
    {
      ...{ ...line('accent'), value: accent ?? undefined },
      hint: 'Of buttons and links, such as 0a6549; made darker or lighter where it would be hard to read. Empty: green.',
    },
    {
      ...{ kind: 'picture', name: 'logo', label: LOOK_LABELS.logo, mostBytes: MAX_LOGO_BYTES },
      hint: `A PNG, JPEG or WebP of at most ${MAX_LOGO_BYTES / 1024} KiB. Without a choice it stays as it is.`,
    },
    ...(logoId === null ? [] : [{ kind: 'check', name: 'noLogo', label: LOOK_LABELS.noLogo } as const]),
  ];
}

export const LOOK_LABELS = {
  name: 'Name',
  support: 'Where payers find help',
  returnUrl: 'Way back to the shop',
  embedOrigins: 'Sites that may show the page in a frame',
  accent: 'Colour',
  logo: 'Logo',
  noLogo: 'Take the logo away',
} as const;

const line = (name: keyof typeof LOOK_LABELS) => ({ kind: 'line', name, label: LOOK_LABELS[name] }) as const;

/** A field that is empty takes its setting away. */
export function readLook({ name = '', support, returnUrl, embedOrigins, accent, logo, noLogo }: Fields) {
  return {
    ...{ name, support: support?.trim() ?? null, returnUrl: returnUrl?.trim() ?? null },
    ...{ embedOrigins: embedOrigins?.trim() ?? null, accent: accent?.trim() ?? null },
    ...(logo === undefined ? {} : { logo: { file: 'the picture', content: logo } }),
    ...(noLogo === undefined ? {} : { logo: null }),
  };
}
