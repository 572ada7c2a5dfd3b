import { Argument, type Command, Option } from '@commander-js/extra-typings';
import { AppError } from '../../core/domain/errors.ts';
import type { TSchema } from '../../core/runtime/type.ts';
import { joinParts, optionOf, type Printed, writeText } from '../../faces/operator/command-words.ts';
import type { ExportedRows } from '../../faces/operator/export/write-rows.ts';
import type { LocalOperation } from '../../faces/operator/operation.ts';
import { type Option as Declared, declaredOption, membersOf } from '../../faces/operator/option.ts';
import { askPerson, hasPerson } from './ask-person.ts';
import { collect, type Print, type Result, type Terminal } from './terminal.ts';

type AnyCommand = Command<unknown[], Record<string, unknown>>;
/** `by` is the name given with `--by`. `file` is the path given with `--file`; that file holds more entries. */
export type Typed = { input: Record<string, unknown>; file?: string | undefined; by: string | undefined };
/** The functions of commands that need a person's decision partway through the operation. */
export type Ways = Readonly<
  Record<string, (terminal: Terminal, operation: LocalOperation, typed: Typed) => Promise<Result | null>>
>;

/** Adds a subject's commands to its group, in order. Each operation declares its own name, arguments, options and output. */
export function addOperations(
  group: Command,
  terminal: Terminal,
  print: Print,
  operations: readonly LocalOperation[],
  ways: Ways = {},
): void {
  for (const operation of operations) {
    // If several operations have the same command, the last one declares all of its options. If a member that the last one needs is
    // missing, another one runs.
    const same = operations.filter(({ command }) => command !== undefined && command === operation.command);
    if (operation.command === undefined || operation !== same.at(-1)) continue;
    const way = ways[operation.command] ?? runAndPrint;
    const name = operation.command.split(' ').at(-1) ?? '';
    const command = group.command(name).description(writeText(operation.does ?? '')) as unknown as AnyCommand;
    const readTyped = addInput(command, operation);
    command.action((...given: unknown[]) => {
      const typed = readTyped(given);
      const chosen = same.findLast(({ input }) => neededBy(input).every((member) => typed.input[member] !== undefined));
      return print(way(terminal, chosen ?? operation, typed));
    });
  }
}

/** Adds the arguments and options that an input's members declare. Returns a function that builds the input from the action's arguments. */
function addInput(command: AnyCommand, { input, by, nothing }: LocalOperation): (given: readonly unknown[]) => Typed {
  const names: string[] = [];
  const byOption = new Map<string, string>();
  const byFlag = new Map<string, readonly [member: string, value: string]>();
  for (const [member, schema] of Object.entries(membersOf(input))) {
    const declared = declaredOption(schema);
    if (declared === undefined) continue;
    if (by?.before === member) command.option('--by <name>', by.help);
    if (declared.entries?.file !== undefined) {
      const { value, help } = declared.entries.file;
      command.option(`--file ${value}`, help);
    }
    if (declared.isArgument) {
      const argument = new Argument(declared.value, writeText(declared.help));
      command.addArgument(declared.choices === undefined ? argument : argument.choices(declared.choices));
      names.push(member);
    } else if (declared.flags !== undefined) {
      for (const [place, [value, help]] of Object.entries(declared.flags).entries()) {
        const others = Object.keys(declared.flags).slice(place + 1);
        command.addOption(new Option(`--${value}`, writeText(help)).conflicts(others));
        byFlag.set(value, [member, value]);
      }
    } else {
      const option = commanderOption(member, declared);
      byOption.set(option.attributeName(), member);
      command.addOption(option);
      if (declared.isRemovable) command.option(optionOf(member).replace('--', '--no-'), 'remove this setting');
    }
  }
  if (by !== undefined && by.before === undefined) command.option('--by <name>', by.help);
  return (given) => {
    const options = Object.entries(given[names.length] as Record<string, unknown>);
    const entries = options.flatMap(([option, value]): (readonly [string, unknown])[] => {
      const member = byOption.get(option);
      const flag = byFlag.get(option);
      return member !== undefined ? [[member, value]] : flag !== undefined ? [flag] : [];
    });
    if (nothing !== undefined && entries.length === 0) throw new AppError('INVALID_ARGUMENT', nothing);
    const typed = names.map((member, place) => [member, given[place]] as const);
    const { by: name, file } = Object.fromEntries(options) as { by?: string; file?: string };
    return { input: Object.fromEntries([...typed, ...entries]), file, by: by && name };
  };
}

function commanderOption(member: string, declared: Declared): Option {
  const { value, help, isNeeded = false, isList = false, choices, conflicts } = declared;
  const option = new Option(`${optionOf(member)} ${value}`.trimEnd(), writeText(help)).makeOptionMandatory(isNeeded);
  if (isList) option.argParser(collect);
  if (choices !== undefined) option.choices(choices);
  if (conflicts !== undefined) option.conflicts(new Option(optionOf(conflicts)).attributeName());
  return declared.default === undefined ? option : option.default(declared.default);
}

/** Runs an operation, locally or on a server, and prints its outcome. */
export async function runAndPrint(terminal: Terminal, operation: LocalOperation, { input, file, by }: Typed) {
  const [{ readParts, runOperation }, { now }] = await Promise.all([
    import('./run-operation.ts'),
    import('./with-database.ts'),
  ]);
  const { given, isSecretTyped } = await readParts(terminal, operation.input, input, file);
  if (operation.isExport === true) {
    const { exportRows, readFormat } = await import('./export-rows.ts');
    const { output } = given as { output?: string };
    const how = { format: readFormat(given, terminal.json), output };
    const write = (rows: unknown) => exportRows(terminal, how, rows as ExportedRows<object>);
    return runOperation(terminal, operation, given as never, { by }, write);
  }
  const answers = await askFor(terminal, operation, given, () => operation.read(given as never, now()));
  const { mayCreate = false, asOwner = false } = operation;
  const outcome = await runOperation(terminal, operation, { ...given, ...answers } as never, {
    by,
    mayCreate,
    asOwner,
  });
  const { refusal, ...printed }: Printed = operation.print?.(outcome, { isSecretTyped }) ?? { text: '' };
  if (refusal === undefined) return { data: operation.view(outcome), ...printed };
  terminal.note(joinParts(printed.text));
  throw new AppError('USAGE', refusal);
}

/** Asks a person at the terminal for missing members, after `check` has accepted the others. An empty line means no value. */
async function askFor(
  terminal: Terminal,
  { asks = [] }: LocalOperation,
  given: Readonly<Record<string, unknown>>,
  check: () => void,
): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  if (asks.length === 0 || terminal.json || !hasPerson(terminal)) return answers;
  check();
  for (const { member, question, after } of asks) {
    if (given[member] !== undefined || (after !== undefined && answers[after] === undefined)) continue;
    const answer = await askPerson(terminal, question);
    if (answer) answers[member] = answer;
  }
  return answers;
}

const neededBy = (input: TSchema) => (input as { required?: readonly string[] }).required ?? [];
