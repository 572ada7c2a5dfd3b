/** Describes why and by whom an endpoint was disabled: `moves house (by anna)`, or `by anna` without a reason. */
export function disabledReason(reason: string, name: string): string {
  return reason === '' ? `by ${name}` : `${reason} (by ${name})`;
}

/** Removes the name from such a description, for API keys, because people's names are only for the operator. */
export function withoutName(reason: string): string {
  return reason.replace(/(^| \()by .*$/s, (_, before) => (before === '' ? 'by hand' : ' (by hand)'));
}
