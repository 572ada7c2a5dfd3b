import { Argument, type Command } from '@commander-js/extra-typings';
import { collect, type Print } from '../terminal/option-parts.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Only the types of the program are imported here, so that showing help stays quick. */
const KINDS = ['email', 'telegram', 'slack', 'discord', 'ntfy', 'webhook'] as const;
const CHANNEL = ['<channel>', 'chn_…'] as const;

export function addNotifyCommands(program: Command, terminal: Terminal, print: Print): void {
  const group = program.command('notify').description('channels by which operators are told of alarms');
  group
    .command('add')
    .description('add a channel; "-" for --url, --token or --secret reads it from standard input')
    .addArgument(new Argument('<kind>', 'what it is').choices(KINDS))
    .option('--name <name>', 'what you call it, 1 to 100 characters; else its kind')
    .option(
      '--url <url>',
      'smtps://user:password@host for email, the webhook of slack, discord or webhook, https://host/topic for ntfy',
    )
    .option('--from <address>', 'email: who sends')
    .option('--to <address…>', 'email: who is told, several separated by commas', collect)
    .option('--token <token>', 'telegram: of the bot; ntfy: of the user, if the topic needs one')
    .option('--chat <chat>', 'telegram: the number of the chat, or @channelname')
    .option('--secret <whsec_…>', 'webhook: a secret of your own; else one is made and shown once')
    .option('--own-network', 'the server is in your own network: private addresses, this machine, and no TLS are taken')
    .option('--quiet <hours>', 'hold back what can wait, such as 22:00-07:00')
    .option('--summary <time>', 'send a summary each day, such as at 08:00')
    .option('--time-zone <zone>', 'of these times, such as Europe/Berlin; else UTC')
    .action(async (kind, { ownNetwork: isOwnNetwork, ...input }) =>
      print((await import('./notify.ts')).printNewChannel(terminal, { ...input, kind, isOwnNetwork })),
    );
  group
    .command('list')
    .description('list the channels and how they do, without what leads there')
    .action(async () => print((await import('./notify.ts')).printChannels(terminal)));
  group
    .command('test')
    .description('send a test message by a channel now; exits 1 if it does not arrive')
    .argument(...CHANNEL)
    .action(async (channelId) => print((await import('./notify.ts')).printTestedChannel(terminal, { channelId })));
  group
    .command('remove')
    .description('remove a channel for good: it is told nothing more')
    .argument(...CHANNEL)
    .action(async (channelId) => print((await import('./notify.ts')).printRemovedChannel(terminal, { channelId })));
}
