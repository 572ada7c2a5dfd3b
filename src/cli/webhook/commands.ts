import type { Command } from '@commander-js/extra-typings';
import { collect, PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

const ENDPOINT = ['<endpoint>', 'whe_…'] as const;
const URL_TEXT =
  'where webhooks are sent: https:// and a public address; test projects also this machine, where it is allowed';
const EVENTS_OPTION = ['--events <type…>', 'only these types, several separated by commas, or all', collect] as const;
const SECRET_OPTION = [
  '--secret <whsec_…>',
  'a secret of your own, 24 to 64 bytes; "-" reads it from standard input',
] as const;

export function addWebhookCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('webhook').description('endpoints that are told about events');
  group
    .command('add')
    .description('add an endpoint and show its signing secret, once')
    .option(...PROJECT_OPTION)
    .requiredOption('--url <url>', URL_TEXT)
    .option('--description <text>', 'what you call it, up to 200 characters')
    .option(...EVENTS_OPTION)
    .option(...SECRET_OPTION)
    .action(async ({ project: projectId, ...input }) =>
      print((await import('./webhook.ts')).printNewEndpoint(terminal, { ...input, projectId })),
    );
  group
    .command('list')
    .description('list endpoints and how they do, without their secrets')
    .option(...PROJECT_OPTION)
    .action(async ({ project: projectId }) =>
      print((await import('./webhook.ts')).printEndpoints(terminal, { projectId })),
    );
  group
    .command('show')
    .description('show how an endpoint does, its deliveries of 24 hours, and the fingerprints of its secrets')
    .argument(...ENDPOINT)
    .action(async (endpointId) => print((await import('./webhook.ts')).printEndpoint(terminal, { endpointId })));
  group
    .command('update')
    .description('change the URL of an endpoint, its description, or what it is told')
    .argument(...ENDPOINT)
    .option('--url <url>', URL_TEXT)
    .option('--description <text>', 'what you call it, up to 200 characters')
    .option(...EVENTS_OPTION)
    .action(async (endpointId, change) =>
      print((await import('./webhook.ts')).printUpdatedEndpoint(terminal, { ...change, endpointId })),
    );
  group
    .command('rotate')
    .description('give an endpoint a new secret and show it, once; the former one signs beside it for a while')
    .argument(...ENDPOINT)
    .option(...SECRET_OPTION)
    .option(
      '--overlap <duration>',
      'how long the former secret signs too, up to 30d; 0 ends all former ones at once',
      '24h',
    )
    .option(
      '--key-is-lost',
      'seal with another master key than the one that sealed the former secret, which is lost for ever',
    )
    .action(async (endpointId, { keyIsLost: isKeyLost = false, ...input }) =>
      print((await import('./webhook.ts')).printRotatedSecret(terminal, { ...input, endpointId, isKeyLost })),
    );
  addSwitches(group, terminal, print);
}

function addSwitches(group: Command, terminal: Terminal, print: Print): void {
  group
    .command('test')
    .description(
      'send a ping to an endpoint now and say what is wrong with its receiver; exits 1 if it is not delivered',
    )
    .argument(...ENDPOINT)
    .action(async (endpointId) => print((await import('./webhook.ts')).printTest(terminal, { endpointId })));
  group
    .command('enable')
    .description('let an endpoint be attempted again, and what waits for it at once')
    .argument(...ENDPOINT)
    .action(async (endpointId) => print((await import('./webhook.ts')).printEnabledEndpoint(terminal, { endpointId })));
  group
    .command('disable')
    .description('send an endpoint nothing until it is enabled')
    .argument(...ENDPOINT)
    .option('--reason <text>', 'why, up to 200 characters')
    .option('--by <name>', 'who does this; else your user name')
    .action(async (endpointId, { by, reason }) =>
      print((await import('./webhook.ts')).printDisabledEndpoint(terminal, { endpointId, by, reason })),
    );
}
