/** Why somebody disabled an endpoint, and who: `moves house (by anna)`, or `by anna` where no reason was given. */
export function disabledReason(reason: string, name: string): string {
  return reason === '' ? `by ${name}` : `${reason} (by ${name})`;
}

/** The same without who it was, for keys of the API: who the people are is the operator's. */
export function withoutName(reason: string): string {
  return reason.replace(/(^| \()by .*$/s, (_, before) => (before === '' ? 'by hand' : ' (by hand)'));
}
