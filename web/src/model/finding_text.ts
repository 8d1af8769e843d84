// How the parts of a finding read.

/** A command to copy, or a sentence to read. */
export function looksLikeCommand(text: string): boolean {
  return /^(\$ )?(lacuna|python3?|torchrun|srun|nsys|curl|[A-Z_]+=\S+) /.test(text);
}
