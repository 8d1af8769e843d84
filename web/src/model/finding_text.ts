// How the parts of a finding read.

/** A command to copy, or a sentence to read. */
export function looksLikeCommand(text: string): boolean {
  return /^(\$ )?(lacuna|python3?|torchrun|srun|nsys|curl|[A-Z_]+=\S+) /.test(text);
}

const WORDS_MAX = 12;

/** Code to paste, or a sentence: a change may be either. */
export function looksLikeCode(text: string): boolean {
  const plain = text.trim();
  if (plain.includes('\n') || looksLikeCommand(plain)) return true;
  // a call with its remark: "DataLoader(..., num_workers=3)  # now 1"
  if (/^[\w.]+\(.*\)\s*(#|$)/.test(plain)) return true;
  return !/[^.][.!?]$/.test(plain) && plain.split(/\s+/).length <= WORDS_MAX;
}
