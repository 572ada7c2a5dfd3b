export type Selector = { name: string; matchers: { label: string; operator: string; value: string }[] };

/** Words of the language that look like names of metrics. */
const WORDS = new Set(['by', 'on', 'and', 'or', 'group_right', 'bool']);

/** The metrics that a query asks for. It knows as much of PromQL as our rules and our dashboard use. */
export function selectorsOf(query: string): Selector[] {
  const bare = query.replace(/\b(?:by|on) \([^)]*\)/g, '').replace(/\[[$\w]+\]/g, '');
  const names = [...bare.matchAll(/(?<![\w"=~|.])([a-z_][a-z_0-9]*)\b(?!\s*\()(\{[^}]*\})?(?![\w"])/g)];
  return names
    .filter(([, name = '']) => !WORDS.has(name))
    .map(([, name = '', braces = '']) => ({
      name,
      matchers: [...braces.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].map(([, label = '', operator = '', value = '']) => {
        return { label, operator, value };
      }),
    }));
}

/** The labels by which a query groups, and that its legend shows. */
export function labelsOf(query: string, legend: string): string[] {
  const grouped = [...query.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/));
  const shown = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
  return [...grouped, ...shown];
}

/** Whether a series with these labels is asked for, as far as its matchers name them. */
export function matches({ matchers }: Selector, labels: Readonly<Record<string, string>>): boolean {
  return matchers.every(({ label, operator, value }) => {
    const isEqual = operator.endsWith('~')
      ? new RegExp(`^(?:${value})$`).test(labels[label] ?? '')
      : labels[label] === value;
    return operator.startsWith('!') ? !isEqual : isEqual;
  });
}
