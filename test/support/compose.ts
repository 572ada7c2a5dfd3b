/** Substitutes variables like compose: `${NAME}`, `${NAME:-otherwise}` and `${NAME:?message}`. */
export function fillVariables(value: string, env: Readonly<Record<string, string>>): string {
  return value.replaceAll(/\$\{([A-Z_]+)(?::([-?])([^}]*))?\}/g, (_, name: string, kind?: string, other = '') => {
    const found = env[name] ?? '';
    if (found !== '') return found;
    if (kind === '-') return other;
    throw new Error(`${name} is not set`);
  });
}

/** Reads the variables of a `.env` file. */
export function readEnvFile(text: string): Record<string, string> {
  return Object.fromEntries([...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]));
}
