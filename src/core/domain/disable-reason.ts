/** Why and by whom an endpoint was disabled: `moves house (by anna)`, or `by anna` without a reason. */
export function disabledReason(reason: string, name: string): string {
  return reason === '' ? `by ${name}` : `${reason} (by ${name})`;
}

/** The same without the name, for API keys: the names of people are private to the operator. */
export function withoutName(reason: string): string {
  return reason.replace(/(^| \()by .*$/s, (_, before) => (before === '' ? 'by hand' : ' (by hand)'));
}
