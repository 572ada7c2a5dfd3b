/**
 * The variables of a file such as systemd's EnvironmentFile=, which holds one NAME=value a line:
 *
 *     # Nodes of two operators.
 *     QUITTANCE_MAINNET_NODES=https://api.trongrid.io#rps=15,https://tron.example.com
 *
 * What systemd would read in another way is refused: values that go on in the next line, escapes, quotes inside a value.
 */
export function parseEnvironment(text) {
  const variables = {};
  for (const [index, line] of text.split('\n').entries()) {
    const variable = parseLine(line.trim());
    if (variable === undefined) {
      // The line itself may hold a secret.
      throw new Error(
        `line ${index + 1} is not NAME=value: no spaces before "=", no "export", no backslash, and quotes only around all of the value`,
      );
    }
    if (variable !== null) variables[variable.name] = variable.value;
  }
  return variables;
}

/** `null` for what says nothing, `undefined` for what is wrong. */
function parseLine(line) {
  if (line.includes('\\')) return undefined;
  if (line === '' || /^[#;]/.test(line)) return null;
  const [, name, text] = /^([A-Za-z_][A-Za-z0-9_]*)=\s*(.*)$/.exec(line) ?? [];
  if (name === undefined) return undefined;
  const [, , quoted] = /^(["'])([^"'`]*)\1$/.exec(text) ?? [];
  if (quoted === undefined && /["']/.test(text)) return undefined;
  return { name, value: quoted ?? text };
}
