import { type Command, Option } from '@commander-js/extra-typings';
import { PROJECT_OPTION, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function addRequestCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('request').description('what shops asked of the API in the last 30 days');
  group
    .command('list')
    .description('list requests, the newest first')
    .option(...PROJECT_OPTION)
    .addOption(
      new Option('--without-key', 'those that came without a valid key, which belong to no project').conflicts(
        'project',
      ),
    )
    .option('--status <class>', '2xx, 4xx or 5xx')
    .option('--key <key_…>', 'only with this key')
    .option('--external-id <id>', 'only about the invoice with this externalId')
    .option('--from <date>', 'from this day or moment on (2026-09-01, UTC; a time needs its zone)')
    .option('--to <date>', 'to the end of this day, or until before this moment')
    .option('--before <req_…>', 'the page after this request: those before it')
    .option('--limit <count>', 'how many at most, 1 to 500', '50')
    .action(async ({ project: projectId, withoutKey: isKeyless, ...input }) =>
      print((await import('./request.ts')).printRequests(terminal, { ...input, projectId, isKeyless })),
    );
  group
    .command('show')
    .description('show what became of a request')
    .argument('<request>', 'req_…, from the header X-Request-Id or the requestId of an error')
    .action(async (requestId) => print((await import('./request.ts')).printRequest(terminal, { requestId })));
}
