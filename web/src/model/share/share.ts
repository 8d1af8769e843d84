// Names and lists of the Share dialog: pure.

/** Kinds in one order, so that the same choice is the same address. */
export function redactList(kinds: readonly string[]): string {
  return [...kinds].sort().join(',');
}

/** A file name that every system takes: letters, digits, dots and dashes of the trace's name. */
export function fileName(name: string, ending: string, what = 'report'): string {
  const plain = name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 60);
  return `${plain === '' ? 'lacuna' : plain}-${what}.${ending}`;
}
