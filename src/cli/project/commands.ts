import { type Command, Option } from '@commander-js/extra-typings';
import { POLICIES } from '../../domain/policy.ts';
import { NETWORK_CHOICE, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const PROJECT_ARGUMENT = ['[projectId]', 'prj_…; may be left out when there is only one'] as const;
const SURCHARGE_OPTION = [
  '--max-surcharge <usdt>',
  'with a tail, less than this is added to an amount to make it unique; 0.01, and 0.1 with tail-4 and tail-3, unless it is said',
] as const;
const LIFETIME_OPTION = ['--lifetime <duration>', 'how long an invoice waits: 5m to 30d'] as const;
const UNPAID_OPTION = [
  '--max-unpaid <n>',
  'how many invoices of the last 30 minutes may be unpaid, so that nobody uses amounts up by ordering; or none',
] as const;
const UNPAID_PER_MINUTE_OPTION = ['--max-unpaid-per-minute <n>', 'the same of the last minute'] as const;
const NAME_OPTION = ['--name <name>', 'what you call it, and what payers see: 1 to 100 characters'] as const;

export function addProjectCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('project').description('projects: each belongs to one network for life');
  const policyOption = () =>
    new Option(
      '--policy <policy>',
      'how amounts are told apart: tail, tail-4 and tail-3 add digits to them, up to the 6th, 4th or 3rd decimal; exact takes an address for each invoice of an amount',
    ).choices(POLICIES);
  const create = group
    .command('create')
    .description('make a project and print its id')
    .requiredOption(...NAME_OPTION)
    .requiredOption('--network <network>', NETWORK_CHOICE)
    .addOption(policyOption().default('tail'))
    .option(...SURCHARGE_OPTION)
    .option(...LIFETIME_OPTION, '30m')
    .option(...UNPAID_OPTION, '600')
    .option(...UNPAID_PER_MINUTE_OPTION, '120')
    .option('--orders-per-day <n>', 'how many you expect, paid or not: says how many addresses that needs')
    .option('--prices <n>', 'of how many different amounts they are, about evenly; else of one')
    .action(async (options) => print((await import('./project.ts')).printNewProject(terminal, options)));
  addBrandOptions(create, { removable: false });
  const update = group
    .command('update')
    .description('change settings of a project')
    .argument(...PROJECT_ARGUMENT)
    .option(...NAME_OPTION)
    .addOption(policyOption())
    .option(...SURCHARGE_OPTION)
    .option(...LIFETIME_OPTION)
    .option(...UNPAID_OPTION)
    .option(...UNPAID_PER_MINUTE_OPTION)
    .option('--by <name>', 'who does this, for the record; else your user name')
    .action(async (projectId, options) =>
      print((await import('./project.ts')).printUpdatedProject(terminal, projectId, options)),
    );
  addBrandOptions(update, { removable: true });
  group
    .command('list')
    .description('list the projects')
    .option('--archived', 'the archived ones instead')
    .action(async (options) => print((await import('./project.ts')).printProjects(terminal, options)));
  group
    .command('show')
    .description('show a project and what it has')
    .argument(...PROJECT_ARGUMENT)
    .action(async (projectId) => print((await import('./project.ts')).printProject(terminal, projectId)));
  for (const [name, description] of ARCHIVING) {
    group
      .command(name)
      .description(description)
      .argument('<projectId>', 'prj_…')
      .option('--by <name>', 'who does this, for the record; else your user name')
      .action(async (projectId, { by }) =>
        print((await import('./project.ts')).printArchived(terminal, name, { projectId, by })),
      );
  }
}

const ARCHIVING = [
  ['archive', 'take no new invoices for a project and leave it out of lists; what it has goes on'],
  ['unarchive', 'put an archived project back'],
] as const;

type Optionable = { option(flags: string, description: string): unknown };

/** Adds the options for the parts of a project that payers see. `removable`: each can be taken away again. */
function addBrandOptions(command: Optionable, { removable }: { removable: boolean }): void {
  for (const [name, value, description] of BRAND_OPTIONS) {
    command.option(`--${name} <${value}>`, description);
    if (removable) command.option(`--no-${name}`, 'take it away');
  }
}

const BRAND_OPTIONS = [
  [
    'support',
    'contact',
    'where payers find help: an e-mail address, an https:// link, or words such as a Telegram name',
  ],
  [
    'return-url',
    'url',
    'where payers get back to the shop: an https:// link, in which {invoiceId} becomes the id of the invoice',
  ],
  [
    'embed-origins',
    'sites',
    'sites that may show the page in a frame, such as https://shop.example: at most 5, with commas between',
  ],
  ['accent', 'colour', 'of buttons and links, as in 0a6549; made darker or lighter where it would be hard to read'],
  ['logo', 'file', 'a PNG, JPEG or WebP of at most 32 KiB, each side 16 to 1024 px'],
] as const;
