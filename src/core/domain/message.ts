/**
 * A next step, given as a use case named by its command. `args` are positional. `input` contains named fields: a list repeats the field,
 * and `true` is a flag. A command line prints the command; a page shows a link or a button.
 */
export type Hint = {
  command: string;
  args?: readonly string[];
  input?: Readonly<Record<string, string | readonly string[] | true>>;
};

/**
 * The parts that each interface words in its own way: an input field, a next step, or a note that a secret of some kind was entered at
 * `place`.
 */
type Named = { field: string } | { secret: string; place?: string } | Hint;

/** How an interface words these parts: `field('webhookUrl')` is `--webhook-url` on a command line, and a label on a page. */
export type Words = {
  field(name: string): string;
  step(hint: Hint): string;
  secret(kind: string, place?: string): string;
};

/** This form is for logs: it contains the plain names of fields and use cases. */
const BARE: Words = {
  field: (name) => name,
  step: ({ command }) => command,
  secret: (kind) => `this looks like ${kind}`,
};

/** A text that contains fields and next steps as data, so that each interface can word them in its own way. */
export class Message {
  readonly parts: readonly (string | Named)[];

  constructor(parts: readonly (string | Named)[]) {
    this.parts = parts;
  }

  write({ field, step, secret }: Words): string {
    const words = this.parts.map((part) => {
      if (typeof part === 'string') return part;
      if ('field' in part) return field(part.field);
      return 'secret' in part ? secret(part.secret, part.place) : step(part);
    });
    return words.join('');
  }

  toString(): string {
    return this.write(BARE);
  }
}

/** A text; it's a `Message` if it contains a field or a next step. */
export type Text = string | Message;

/**
 * Builds a text: say`there is no project: make one with "${{ command: 'project create' }}"`. Nested messages keep their fields and next
 * steps.
 */
export function say(texts: TemplateStringsArray, ...values: readonly (Text | number | Named)[]): Text {
  return textOf(texts.flatMap((text, index) => [text, ...partsOf(values[index] ?? '')]));
}

export function joinTexts(texts: readonly Text[], separator: string): Text {
  return textOf(texts.flatMap((text, index) => [index === 0 ? '' : separator, ...partsOf(text)]));
}

function partsOf(value: Text | number | Named): readonly (string | Named)[] {
  if (value instanceof Message) return value.parts;
  return [typeof value === 'number' ? String(value) : value];
}

function textOf(parts: readonly (string | Named)[]): Text {
  return parts.every((part) => typeof part === 'string') ? parts.join('') : new Message(parts);
}
