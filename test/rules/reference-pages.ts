import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { parse } from 'yaml';
import { addCommands } from '../../src/cli/main.ts';
import { EXIT } from '../../src/cli/terminal/describe-error.ts';
import type { Terminal } from '../../src/cli/terminal/terminal.ts';
import { ALARM_KINDS, ALARMS, type AlarmKind } from '../../src/core/domain/alarm-kinds.ts';
import { EVENT_TYPES } from '../../src/core/domain/event.ts';
import { createMetrics } from '../../src/core/runtime/metrics.ts';
import { SCHEMA_FILE } from '../../src/core/store/db/schema-changes.ts';
import { EVENT_SCHEMAS } from '../../src/faces/api/event-schemas.ts';
import { writeText } from '../../src/faces/operator/command-words.ts';
import { PROBLEMS } from '../../src/faces/web/problem.ts';
import { FILE_VARIABLES, SETTINGS, type Setting, VARIABLES } from '../../src/server/config/settings.ts';
import { FORTY_EIGHT } from '../tampering/forty-eight.ts';
import { readSourceTree } from './source-tree.ts';
import { VARIABLE_TEXTS } from './variable-texts.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Tells readers not to edit such a page by hand. */
const NOTE = 'This page is generated. `npm run docs:record` regenerates it from the code.';

/** Generates pages of docs/ from the code, by their paths below docs/. */
export async function referencePages(): Promise<Readonly<Record<string, string>>> {
  return {
    'reference/alarms.md': alarmsPage(),
    'reference/configuration.md': configurationPage(),
    'reference/cli.md': await cliPage(),
    'reference/metrics.md': metricsPage(),
    'reference/errors.md': errorsPage(),
    'reference/events.md': eventsPage(),
    'contributing/tampering.md': tamperingPage(),
    'contributing/schema.sql': schemaInForce(),
    'decisions/README.md': decisionsPage(),
  };
}

export const GENERATED = [
  ...['alarms', 'configuration', 'cli', 'metrics', 'errors', 'events'].map((name) => `reference/${name}.md`),
  'contributing/tampering.md',
  'contributing/schema.sql',
  'decisions/README.md',
];

const page = (title: string, ...parts: readonly string[]) => `${[`# ${title}`, NOTE, ...parts].join('\n\n')}\n`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

function alarmsPage(): string {
  const overview = ALARM_KINDS.map((kind) => {
    const { rank, isUrgent, endsBy } = ALARMS[kind];
    return [
      `[\`${kind}\`](#${kind})`,
      rank === 1 ? 'stops or threatens money' : 'waits for a person',
      isUrgent ? 'yes' : 'no',
      endsBy === 'cause' ? 'when its cause is gone' : 'when you close it',
    ];
  });
  return page(
    'Alarms',
    'Quittance raises an alarm for each problem that an operator must know about. Open alarms appear in the console, in [notifications](../guides/notifications.md), in the [metrics](metrics.md), and in the output of this command:',
    '```sh\nquittance chain status\n```',
    'Step-by-step instructions are in [Incidents](../guides/incidents.md) and [Tampering](../guides/tampering.md). Quittance sends *urgent* alarms in quiet hours too. If you removed a network from the settings, close its alarms with `quittance chain acknowledge --network …`.',
    table(['Alarm', 'Severity', 'Urgent', 'Ends'], overview),
    ...ALARM_KINDS.map(alarmSection),
  );
}

/** Where to find the steps, for alarms that need several. */
const STEPS: Partial<Record<AlarmKind, readonly [title: string, page: string]>> = {
  blind: ['No node shows new blocks', 'incidents'],
  halted: ['The watcher halted', 'incidents'],
  'unverifiable-block': ["A block can't be proven", 'incidents'],
  'contract-paused': ['Tether froze an address', 'incidents'],
  'address-frozen': ['Tether froze an address', 'incidents'],
  'funds-destroyed': ['Tether froze an address', 'incidents'],
  'payment-denied': ['The books differ', 'incidents'],
  'set-aside': ['Payments are set aside', 'tampering'],
  'balance-differs': ['The books differ', 'incidents'],
  'database-restored': ['Data is gone', 'incidents'],
  'database-promoted': ['A standby was promoted', 'incidents'],
  'database-full': ['The database is down', 'incidents'],
  'backup-failed': ['Backups fail', 'incidents'],
  'backup-old': ['Backups fail', 'incidents'],
  'address-damaged': ['An address was changed', 'tampering'],
  'address-not-vouched': ["An address isn't signed", 'tampering'],
  'address-change-pending': ['Pending additions', 'addresses'],
  'address-change-failed': ['Pending additions', 'addresses'],
  'schema-changed': ['The schema was changed', 'tampering'],
  'row-changed': ['A row was changed', 'tampering'],
  'row-unsealed': ['Rows have no seal', 'tampering'],
  'key-unknown': ['A seal has an unknown key', 'tampering'],
  'rows-missing': ['Rows are missing', 'tampering'],
  'audit-broken': ['The audit log was changed', 'tampering'],
  'alarms-silenced': ['Alarms are hidden', 'tampering'],
  'capacity-low': ['No amounts are left', 'incidents'],
  'webhook-failing': ['Webhooks fail', 'incidents'],
  'webhook-disabled': ['Webhooks fail', 'incidents'],
  'rate-old': ['Rates', 'adapters'],
  'notify-failing': ['A channel that fails', 'notifications'],
  'clock-wrong': ['A clock is wrong', 'incidents'],
  'order-flood': ['A flood of orders', '../explained/amounts'],
};

const anchorOf = (title: string) => title.toLowerCase().replaceAll("'", '').replaceAll(' ', '-');

const close = (kind: AlarmKind) => `\`\`\`sh\nquittance chain acknowledge --alarm ${kind}\n\`\`\``;

function alarmSection(kind: AlarmKind): string {
  const { means, impact, advice, endsBy } = ALARMS[kind];
  // The last sentence of an advice often says when the alarm clears.
  const sentences = writeText(advice).split(/(?<=\.) (?=[A-Z])/);
  const clears = sentences.filter((sentence) =>
    /^(The|This) alarm clears|clears the alarm|clears a day after/.test(sentence),
  );
  const does = sentences.filter((sentence) => !clears.includes(sentence)).join(' ');
  const ends =
    endsBy === 'operator'
      ? `${[...clears, clears.length > 0 ? 'Otherwise, close' : 'Close'].join(' ')} it after you have read it:\n\n${close(kind)}`
      : clears.join(' ') || 'The alarm clears when its cause is gone.';
  return [
    `## \`${kind}\``,
    means,
    `**Impact.** ${impact}`,
    `**What to do.** ${[does, ...stepsOf(kind)].filter((part) => part !== '').join(' ')}`,
    `**How it ends.** ${ends}`,
  ].join('\n\n');
}

function stepsOf(kind: AlarmKind): string[] {
  const steps = STEPS[kind];
  return steps === undefined ? [] : [`Steps: [${steps[0]}](${join('../guides', steps[1])}.md#${anchorOf(steps[0])}).`];
}

function configurationPage(): string {
  const sections = Object.entries(VARIABLE_TEXTS).map(([title, texts]) => {
    const rows = VARIABLES.filter((name) => texts[name] !== undefined).map((name) => {
      const { means = '', fallback } = texts[name] ?? {};
      const { fallback: value, bounds, choices }: Setting<unknown> = SETTINGS[name];
      const usual = fallback ?? (value === undefined || String(value) === '' ? 'none' : `\`${value}\``);
      const range = bounds === undefined ? '' : ` ${bounds.minimum} to ${bounds.maximum}.`;
      const words = choices === undefined ? '' : ` One of ${choices.map((choice) => `\`${choice}\``).join(', ')}.`;
      return [`\`${name}\``, usual, `${means}${range}${words}`];
    });
    return `## ${title}\n\n${table(['Variable', 'Default', 'Meaning'], rows)}`;
  });
  const files = [...FILE_VARIABLES.keys()].map((name) => `\`${name}\``).join(', ');
  return page(
    'Configuration',
    'You configure Quittance only with environment variables. Without a `…_NODES` variable, `quittance start` runs the sandbox. With a `…_NODES` variable, it runs the real service.',
    '```sh\nexport QUITTANCE_MAINNET_NODES=grpc://127.0.0.1:50051,https://api.trongrid.io\nexport QUITTANCE_PUBLIC_URL=https://pay.example.com\nquittance start\n```',
    'Quittance checks all variables when it starts, reports all mistakes together, and exits if a variable is invalid. An empty variable counts as unset. Quittance rejects a misspelt name, or warns about it. `quittance doctor` and the console show the current values.',
    '## Secrets in files',
    `You can store a secret in a file instead of the environment. The file must have a single line. Use these variables: ${files}. Don't set both variables for the same secret.`,
    '```sh\nexport DATABASE_URL_FILE=/run/secrets/database-url\n```',
    ...sections,
    '## Commands and programs',
    table(
      ['Variable', 'Read by'],
      [
        ['`QUITTANCE_SERVER`, `QUITTANCE_ADMIN_KEY`', 'commands that run on [a server](admin-api.md)'],
        ['`QUITTANCE_URL`, `QUITTANCE_API_KEY`', '`quittance listen` and shop programs'],
        ['`QUITTANCE_WEBHOOK_SECRET`', 'webhook receivers'],
      ],
    ),
  );
}

type Described = Pick<Command, 'name' | 'description'> & { commands: readonly Command[] };

async function cliPage(): Promise<string> {
  const program = new Command('quittance');
  // Only actions use the terminal.
  await addCommands(program, {} as Terminal, () => true);
  const sections = program.commands.map((command) => commandSection(command as Command));
  return page(
    'Commands',
    'In a checkout, use `npm run quittance --` instead of `quittance`. Every command also has `--help` and `--json`. With `--server`, many commands run on [another machine](admin-api.md#run-commands-on-a-server).',
    '```sh\nquittance --help\nquittance address add --help\n```',
    'Exit codes are in [Errors](errors.md#exit-codes).',
    ...sections,
  );
}

function commandSection(command: Command): string {
  const { commands } = command as unknown as Described;
  const own = command.registeredArguments.length > 0 || command.options.length > 0 || commands.length === 0;
  return [
    `## ${command.name()}`,
    sentence(command.description()),
    ...(own ? [usageOf(command, command.name())] : []),
    ...commands.flatMap((each) => [
      `### ${command.name()} ${each.name()}`,
      sentence(each.description()),
      usageOf(each, `${command.name()} ${each.name()}`),
    ]),
  ].join('\n\n');
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

function usageOf(command: Command, name: string): string {
  const usage = command.registeredArguments.map((argument) => {
    const shown = `${argument.name()}${argument.variadic ? '...' : ''}`;
    return argument.required ? `<${shown}>` : `[${shown}]`;
  });
  const options = command.options.filter(({ hidden }) => !hidden);
  const block = `\`\`\`text\n${['quittance', name, ...usage, ...(options.length > 0 ? ['[options]'] : [])].join(' ')}\n\`\`\``;
  const rows = [
    ...command.registeredArguments.map((argument) => [`\`${argument.name()}\``, argument.description]),
    ...options.map((option) => [`\`${option.flags}\``, option.description]),
  ];
  return rows.length === 0 ? block : `${block}\n\n${table(['Argument or option', 'Meaning'], rows)}`;
}

type Rule = { alert: string; expr: string; labels: { severity: string }; annotations: { summary: string } };

function metricsPage(): string {
  const ours = createMetrics()
    .registry.getMetricsAsArray()
    .map((metric) => metric as unknown as { name: string; help: string; type: string; labelNames: string[] })
    .filter(({ name }) => name.startsWith('quittance_'));
  const rows = ours
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map(({ name, help, type, labelNames }) => [
      `\`${name}\``,
      type,
      labelNames.map((label) => `\`${label}\``).join(', ') || '–',
      help,
    ]);
  const text = readFileSync(join(ROOT, 'deploy/prometheus/rules.yml'), 'utf8');
  const rules = (parse(text) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
  const when = new Map(
    [...text.matchAll(/^ +- alert: (\w+)\n +# When (.+)$/gm)].map(([, alert, words]) => [alert, words]),
  );
  const rulesRows = rules.map(({ alert, labels }) => [`\`${alert}\``, labels.severity, when.get(alert) ?? '']);
  return page(
    'Metrics',
    '`GET /metrics` on the metrics port (9464 by default) returns these metrics and the metrics of Node.js. [Monitoring](../guides/monitoring.md) explains how to use them.',
    '```sh\ncurl -s http://127.0.0.1:9464/metrics | grep ^quittance_\n```',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows),
    '## Rules for Prometheus',
    '[deploy/prometheus/rules.yml](../../deploy/prometheus/rules.yml) has these rules. Act now on `critical`, and today on `warning`.',
    table(['Rule', 'Severity', 'Alerts on'], rulesRows),
  );
}

const EXIT_TEXTS: Readonly<Record<keyof typeof EXIT, string>> = {
  ok: 'done',
  failed: 'failed',
  usage: 'wrong arguments or configuration',
  notFound: 'not found: no such project, key or database',
  conflict: 'conflict: the object already exists, or belongs to another project',
  unavailable: 'the database or server does not respond, or a directory or port is in use',
};

function errorsPage(): string {
  const problems = Object.entries(PROBLEMS).toSorted(([, a], [, b]) => a.status - b.status);
  return page(
    'Errors',
    'The API returns errors as `application/problem+json`. Base your decisions on `code`. See [Errors of the API](api.md#errors) for an example. The running service shows the same list at `/docs/errors`.',
    table(
      ['Status', '`code`', 'Meaning', 'What to do'],
      problems.map(([code, { status, title, advice }]) => [`${status}`, `\`${code}\``, title, advice]),
    ),
    '## Exit codes',
    'Commands exit with one of these codes. With `--json`, an error is `{"error": {"code", "message"}}` on standard output.',
    table(
      ['Exit code', 'Meaning'],
      Object.entries(EXIT_TEXTS).map(([name, text]) => [`${EXIT[name as keyof typeof EXIT]}`, text]),
    ),
    '```sh\nquittance invoice show order-1001 --json || echo "exit code $?"\n```',
  );
}

type Schema = { description?: string; properties?: Record<string, Schema & { const?: string }> };

function eventsPage(): string {
  const rows = EVENT_TYPES.map((type) => {
    const { description = '', properties } = EVENT_SCHEMAS[type] as Schema;
    const members = Object.keys(properties?.['data']?.properties ?? {});
    return [`\`${type}\``, description, members.map((member) => `\`${member}\``).join(', ')];
  });
  return page(
    'Events',
    'Every event has `id`, `type`, `timestamp`, `projectId`, `network`, `sequence` and `data`. [Webhooks](webhooks.md) deliver them, and the [feed](api.md#the-event-feed) keeps them permanently. Return 2xx for unknown types, because later releases add types.',
    table(['`type`', 'Meaning', 'Members of `data`'], rows),
    'To cause an event in the sandbox:',
    '```sh\nquittance trigger invoice.paid\nquittance events tail\n```',
  );
}

function tamperingPage(): string {
  return page(
    'Tampering with the database',
    'This page lists forty-eight ways to tamper with the database through SQL. On an early version thirty of them worked silently. `test/tampering` tries each with the rights of the service (*plain*) and of the owner of the tables, who switches guards off first. Addresses are signed and enforced, and seals are required.',
    '- *prevented*: the database, or a restore, refuses it.\n- *harmless*: it changes nothing that people see or receive.\n- *found*: Quittance neither shows nor trusts the row, and an alarm identifies it within a minute.',
    table(
      ['#', 'Tampering', 'Plain', 'Owner', 'What happens'],
      FORTY_EIGHT.map(([number, , what, plain, owner, happens]) => [`${number}`, what, plain, owner, happens]),
    ),
  );
}

/** Returns the schema that the migrations create, table by table, with the files that write each table. */
function schemaInForce(): string {
  const objects = Object.entries(JSON.parse(readFileSync(SCHEMA_FILE, 'utf8')) as Record<string, string>);
  const of = (kind: string, table: string) =>
    objects
      .filter(([name]) => name.startsWith(`${kind} ${table}.`))
      .map(([name, definition]) => ({ name: name.slice(`${kind} ${table}.`.length), definition }));
  const writers = tableWriters();
  const tables = objects.filter(([name]) => name.startsWith('table ')).map(([name]) => name.slice('table '.length));
  const shown = tables.map((table) => {
    const lines = [
      ...of('column', table).map(({ name, definition }) => `  ${name} ${definition}`),
      ...of('constraint', table).map(({ name, definition }) => `  constraint ${name} ${definition}`),
    ];
    const rest = [...of('index', table), ...of('trigger', table)].map(({ definition }) =>
      definition.endsWith(' is disabled')
        ? `-- disabled: ${definition.slice(0, -' is disabled'.length)};`
        : `${definition};`,
    );
    const written = (writers.get(table) ?? ['migrations only']).map((path) => `-- Written by ${path}`);
    return [...written, `create table ${table} (\n${lines.join(',\n')}\n);`, ...rest].join('\n');
  });
  const functions = objects
    .filter(([name]) => name.startsWith('function '))
    .map(([name, definition]) => `create function ${name.slice('function '.length)} ${definition.trim()};`);
  const head =
    '-- The current schema, as the migrations create it in an empty database and PostgreSQL describes it.\n-- This page is generated. `npm run docs:record` regenerates it. A restore and the owner write every table.';
  return `${[head, ...shown, ...functions].join('\n\n')}\n`;
}

/** Finds the statements in `src/` that insert into, update or delete from each table. */
function tableWriters(): Map<string, string[]> {
  const writers = new Map<string, string[]>();
  for (const { path } of readSourceTree(ROOT)) {
    const text = readFileSync(join(ROOT, path), 'utf8');
    const tables = [...text.matchAll(/\b(?:insert into|update|delete from) ([a-z_]+)/g)].map(([, table = '']) => table);
    for (const table of new Set(tables)) writers.set(table, [...(writers.get(table) ?? []), path]);
  }
  return writers;
}

/** `# 0143. A subject is declared once` → `A subject is declared once`. */
const titleOf = (text: string) => (/^# (.+)$/m.exec(text)?.[1] ?? '').replace(/^\d{4}[.:] /, '');

function decisionsPage(): string {
  const names = readdirSync(join(ROOT, 'docs/decisions')).filter((name) => /^\d{4}-.*\.md$/.test(name));
  const lines = names.toSorted().map((name) => {
    const text = readFileSync(join(ROOT, 'docs/decisions', name), 'utf8');
    const by = /Superseded by \[(\d{4})\]\(([^)]+)\)/.exec(text);
    const link = `[${name.slice(0, 4)}](${name}) ${titleOf(text)}`;
    return by === null ? `- ${link}` : `- ~~${link}~~ Superseded by [${by[1]}](${by[2]}).`;
  });
  return page('Decisions', 'Each decision explains why Quittance works as it does.', lines.join('\n'));
}
