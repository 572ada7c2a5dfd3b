/** The program and the first arguments that run npm. Uses the npm that started this process, if there is one. */
export function npmCommand() {
  const script = process.env['npm_execpath'];
  return script?.endsWith('.js') ? [process.execPath, script] : ['npm'];
}
