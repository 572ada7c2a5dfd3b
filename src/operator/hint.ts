/** The next step as data: the command line prints the command, a page shows a button. `args` are positional arguments and options. */
export type Hint = { command: string; args: readonly string[] };
