export type Selector = { name: string; matchers: { label: string; operator: string; value: string }[] };

/** PromQL keywords that look like metric names. */
const WORDS = new Set(['by', 'on', 'and', 'or', 'group_right', 'bool']);

/** Returns the metrics that a query uses. It supports only the PromQL that our rules and dashboard need. */
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

/** Returns the labels by which a query groups, and those in its legend. */
export function labelsOf(query: string, legend: string): string[] {
  const grouped = [...query.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/));
  const shown = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
  return [...grouped, ...shown];
}

/** Whether a selector's matchers accept a series with these labels. Labels that no matcher names are ignored. */
export function matches({ matchers }: Selector, labels: Readonly<Record<string, string>>): boolean {
  return matchers.every(({ label, operator, value }) => {
    const isEqual = operator.endsWith('~')
      ? new RegExp(`^(?:${value})$`).test(labels[label] ?? '')
      : labels[label] === value;
    return operator.startsWith('!') ? !isEqual : isEqual;
  });
}
