import { say, type Text } from '../../core/domain/message.ts';
import { NETWORK_CHOICE } from '../../core/domain/network.ts';
import { type TSchema, Type } from '../../core/runtime/type.ts';

/**
 * How a command accepts an input's member: as an argument, or as an option with the name that `optionOf` gives it. `value` is its
 * placeholder in the help, such as `<key_…>`; a flag has none. `conflicts` names members that exclude it. `isSecret` lets `-` read it from
 * standard input. `isRemovable` adds a second option, `--no-…`, that sets the member to `null`. With `file`, the value is a path, and the
 * member contains the file's name and content. With `entries`, the values are texts with their places, and another option gives a file with
 * further texts. With `flags`, each value has its own flag.
 */
export type Option = {
  isArgument?: boolean;
  value: string;
  help: Text;
  default?: string;
  conflicts?: string;
  isNeeded?: boolean;
  isList?: boolean;
  isSecret?: boolean;
  choices?: readonly string[];
  isRemovable?: boolean;
  file?: { of: string; mostBytes: number };
  entries?: { file?: { value: string; help: string } };
  flags?: Readonly<Record<string, Text>>;
};
const OPTION = Symbol('option');
type Optioned = TSchema & { [OPTION]?: Option };

export const membersOf = (input: TSchema) => (input as { properties?: Record<string, TSchema> }).properties ?? {};
/** Returns how a command accepts a field, or `undefined` if it doesn't accept it. */
export const declaredOption = (schema: TSchema): Option | undefined => (schema as Optioned)[OPTION];

/** Adds the option to a wire format schema. The property isn't enumerable, so it doesn't appear in generated documents. */
function option<Schema extends TSchema>(schema: Schema, declared: Option): Schema {
  return Object.defineProperty(schema, OPTION, { value: declared });
}

/** The OpenAPI document's information about the field: only the description, or more of its schema. */
type Wire = string | { readonly description?: string; readonly examples?: unknown; readonly pattern?: string };
const wired = (wire: Wire = {}) => (typeof wire === 'string' ? { description: wire } : wire);
type More = Pick<Option, 'default' | 'conflicts'> & { wire?: Wire };

/** An optional line of text. */
export const line = (value: string, help: Text, { wire, ...more }: More = {}) =>
  option(Type.Optional(Type.String(wired(wire))), { value, help, ...more });
export const flag = (help: Text, more: Omit<More, 'wire'> = {}) =>
  option(Type.Optional(Type.Boolean()), { value: '', help, ...more });
/** Several values, separated by commas or given by repeating the option. */
export const lines = (value: string, help: string, wire?: Wire) =>
  option(Type.Optional(Type.Array(Type.String(), wired(wire))), { value, help, isList: true });
export const needed = (value: string, help: string, { wire, ...more }: More = {}) =>
  option(Type.String(wired(wire)), { value, help, isNeeded: true, ...more });
export const oneOf = <const Choice extends string>(choices: readonly Choice[], value: string, help: string) =>
  option(Type.Enum([...choices]), { value, help, isNeeded: true, choices });
/** One of several values, each with its own flag. */
export const flags = <const Value extends string>(of: Readonly<Record<Value, Text>>) =>
  option(Type.Optional(Type.Enum(Object.keys(of) as Value[])), { value: '', help: '', flags: of });
export const maybeOneOf = <const Choice extends string>(
  choices: readonly Choice[],
  value: string,
  help: string,
  more: Omit<More, 'wire'> = {},
) => option(Type.Optional(Type.Enum([...choices])), { value, help, choices, ...more });
/** A setting that `null` removes. With `isRemovable`, the command also has an option that removes it. */
export const removable = (value: string, help: string, isRemovable: boolean) =>
  option(Type.Optional(Type.Union([Type.String(), Type.Null()])), { value, help, isRemovable });
/**
 * The content of a file in base64, or `null` to remove it. `of` is the kind of file. `unread` is the reason to print if a command can't
 * read the file.
 */
export const file = (
  value: string,
  help: string,
  { wire, isRemovable, ...file }: { wire: string; isRemovable: boolean; of: string; mostBytes: number },
) => {
  return option(Type.Optional(Type.Union([givenFile(wire), Type.Null()])), { value, help, isRemovable, file });
};
const givenFile = (content: string) =>
  Type.Unsafe<{ file: string; content: string; unread?: string }>(
    Type.Object({
      file: Type.String({ description: 'File name to show in messages' }),
      content: Type.String({ description: content }),
    }),
  );
export const argument = (value: string, help: string, wire?: Wire) =>
  option(Type.String(wired(wire)), { value, help, isArgument: true });
/** All remaining arguments. */
export const argumentList = (value: string, help: string) =>
  option(Type.Array(Type.String()), { value, help, isArgument: true });
export const argumentOf = <const Choice extends string>(choices: readonly Choice[], value: string, help: string) =>
  option(Type.Enum([...choices]), { value, help, isArgument: true, choices });
export const secret = (value: string, help: string, wire?: Wire) =>
  option(Type.Optional(Type.String(wired(wire))), { value, help, isSecret: true });

export const networkName = () =>
  line('<network>', `${NETWORK_CHOICE} (default: the only configured network)`, {
    wire: 'Network; optional if only one is configured',
  });

const PROJECT_WIRE = 'prj_…; optional if the caller can see only one project';
/** Texts that should be addresses. A command reads them from its arguments, from standard input, or from a file that an option gives. */
export const entries = (value: string, help: Text, file?: { value: string; help: string }) =>
  option(
    Type.Array(
      Type.Object({
        text: Type.String({ description: 'T…' }),
        place: Type.String({ description: 'Where the text comes from, for messages, such as "line 3"' }),
      }),
    ),
    { value, help, isArgument: true, entries: file === undefined ? {} : { file } },
  );
/** A setting that is on unless the command gets its flag `--no-…`. */
export const not = (help: string, wire: string) =>
  option(Type.Optional(Type.Boolean({ description: wire })), { value: '', help });
/** A field that the API requires. On the command line, leaving it out runs another operation. */
export const deciding = (value: string, help: string) => option(Type.String(), { value, help });
export const decidingFlag = (help: string) => option(Type.Literal(true), { value: '', help });
export const decidingFile = (value: string, help: string, file: { of: string; mostBytes: number }) =>
  option(givenFile('In base64'), { value, help, file });

export const projectId = (help = 'project (default: the only project)') =>
  line('<prj_…>', help, { wire: PROJECT_WIRE });
/** The project, given as an argument. */
export const projectArgument = () =>
  option(Type.Optional(Type.String({ description: PROJECT_WIRE })), {
    ...{ value: '[projectId]', help: 'prj_… (default: the only project)', isArgument: true },
  });
/** The options for a period. `of` names the things that the period selects, such as `events `. */
export const period = (of = '') => ({
  from: line('<date>', `${of}from this day (2026-09-01, UTC) or time (with its zone)`, {
    wire: 'Start of the period: a day (2026-09-01, UTC) or a time with its zone',
  }),
  to: line('<date>', 'end of the period: a day (inclusive) or a time (exclusive)', {
    wire: 'End of the period: a day (inclusive) or a time (exclusive)',
  }),
});
export const limit = (most: number, usual: string) =>
  line('<count>', `maximum number of rows, 1 to ${most}`, { default: usual });
/** The options of every export. */
export const exportFormat = () => line('<format>', say`csv or json (default: csv, or json with ${{ field: 'json' }})`);
export const exportFile = () =>
  line('<file>', 'output file, written completely or not at all (default: standard output)');
/** The `--by` option of most commands. */
export const BY = { help: 'your name for the audit log (default: your user name)' };
/** The `--by` option for decisions that only a person can make. */
export const DECIDED_BY = {
  help: 'name of the person who decided, as recorded in the audit log (default: your user name)',
  before: 'network',
};
