/**
 * A next step: a use case by the name of its command. `args` stand without a name, `input` are fields by their names: a list is given
 * more than once, and `true` is only said. A command line prints the command, a page shows a link or a button.
 */
export type Hint = {
  command: string;
  args?: readonly string[];
  input?: Readonly<Record<string, string | readonly string[] | true>>;
};

/** What each face words by itself: a field of the input, a next step, or that a secret of a kind was given, and `place` says where. */
type Named = { field: string } | { secret: string; place?: string } | Hint;

/** The words of a face: `field('webhookUrl')` is `--webhook-url` on a command line, and a label on a page. */
export type Words = {
  field(name: string): string;
  step(hint: Hint): string;
  secret(kind: string, place?: string): string;
};

/** For logs: fields and use cases by their bare names. */
const BARE: Words = {
  field: (name) => name,
  step: ({ command }) => command,
  secret: (kind) => `this looks like ${kind}`,
};

/** A text in which fields and next steps stand as data. Each face writes it with its own words. */
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

/** A text, which is a message where it names a field or a next step. */
export type Text = string | Message;

/** Builds a text: say`there is no project: make one with "${{ command: 'project create' }}"`. Messages in it keep their names. */
export function say(texts: TemplateStringsArray, ...values: readonly (Text | number | Named)[]): Text {
  return textOf(texts.flatMap((text, index) => [text, ...partsOf(values[index] ?? '')]));
}

/** Texts one after the other. */
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
