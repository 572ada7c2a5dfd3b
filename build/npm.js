/** The program and its first arguments that run npm: the very one that started this process, if one did. */
export function npmCommand() {
  const script = process.env['npm_execpath'];
  return script?.endsWith('.js') ? [process.execPath, script] : ['npm'];
}
