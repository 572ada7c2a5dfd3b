import { Argument, type Command, Option } from '@commander-js/extra-typings';
import { optionOf, writeText } from '../../operator/command-words.ts';
import type { Operation } from '../../operator/operation.ts';
import { type Option as Declared, declaredOption } from '../../operator/option.ts';
import type { TSchema } from '../../runtime/type.ts';
import { EXIT } from './describe-error.ts';
import { collect, type Print } from './option-parts.ts';
import { readSecret } from './read-secret.ts';
import type { Result, Terminal } from './terminal.ts';

type AnyCommand = Command<unknown[], Record<string, unknown>>;

/** Adds the commands of a subject to its group, in their order. Each operation says its own name, arguments, options and output. */
export function addOperations(
  group: Command,
  terminal: Terminal,
  print: Print,
  operations: readonly Operation[],
): void {
  for (const operation of operations) {
    if (operation.command === undefined) continue;
    const name = operation.command.slice(group.name().length + 1);
    const command = group.command(name).description(writeText(operation.does ?? '')) as unknown as AnyCommand;
    const readGiven = addInput(command, operation.input);
    command.action((...given: unknown[]) => print(runAndPrint(terminal, operation, readGiven(given))));
  }
}

/** Adds the arguments and options that the members of an input declare. Returns how the input is made of what an action is given. */
function addInput(command: AnyCommand, input: TSchema): (given: readonly unknown[]) => object {
  const names: string[] = [];
  const byOption = new Map<string, string>();
  for (const [member, schema] of Object.entries(membersOf(input))) {
    const declared = declaredOption(schema);
    if (declared === undefined) continue;
    if (declared.isArgument) {
      const argument = new Argument(declared.value, declared.help);
      command.addArgument(declared.choices === undefined ? argument : argument.choices(declared.choices));
      names.push(member);
    } else {
      const option = commanderOption(member, declared);
      byOption.set(option.attributeName(), member);
      command.addOption(option);
    }
  }
  return (given) => ({
    ...Object.fromEntries(names.map((member, place) => [member, given[place]])),
    ...Object.fromEntries(
      Object.entries(given[names.length] as object).map(([name, value]) => [byOption.get(name) ?? name, value]),
    ),
  });
}

function commanderOption(member: string, declared: Declared): Option {
  const { value, help, isNeeded = false, isList = false, choices, conflicts } = declared;
  const option = new Option(`${optionOf(member)} ${value}`.trimEnd(), help).makeOptionMandatory(isNeeded);
  if (isList) option.argParser(collect);
  if (choices !== undefined) option.choices(choices);
  if (conflicts !== undefined) option.conflicts(new Option(optionOf(conflicts)).attributeName());
  return declared.default === undefined ? option : option.default(declared.default);
}

/** Runs an operation, here or on a server, and words its outcome. */
export async function runAndPrint(terminal: Terminal, operation: Operation, input: object): Promise<Result> {
  const { runOperation } = await import('./run-operation.ts');
  const { given, isSecretTyped } = await readSecrets(terminal, operation.input, input);
  const outcome = await runOperation(terminal, operation, given as never);
  const { text, next, hasFailed = false } = operation.print?.(outcome, { isSecretTyped }) ?? { text: '' };
  return {
    ...{ data: operation.view(outcome), text, exitCode: hasFailed ? EXIT.failed : EXIT.ok },
    ...(next === undefined ? {} : { next: writeText(next) }),
  };
}

/** Reads a secret from standard input if it was given as `-`. */
async function readSecrets(terminal: Terminal, input: TSchema, typed: object) {
  let isSecretTyped = false;
  const given: Record<string, unknown> = { ...typed };
  for (const [member, schema] of Object.entries(membersOf(input))) {
    const value = given[member];
    if (declaredOption(schema)?.isSecret !== true || typeof value !== 'string') continue;
    if (value !== '-') isSecretTyped = true;
    given[member] = await readSecret(value, terminal);
  }
  return { given, isSecretTyped };
}

const membersOf = (input: TSchema) => (input as { properties?: Record<string, TSchema> }).properties ?? {};
