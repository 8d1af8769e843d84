// What people call things. The words are those of the program (GET /api/v1/vocabulary), fetched
// once before the first page is drawn; here is only where they are kept.

export interface Word {
  readonly id: string;
  /** Of a cause or a limit, else ''. */
  readonly letter: string;
  /** Where it stands alone: a row of a table, a title. */
  readonly label: string;
  /** A word or two: legends, chips. */
  readonly short: string;
  /** Of a cause: continues "the GPU waits ...", else ''. */
  readonly waits: string;
  /** What exactly is meant, in a sentence. */
  readonly definition: string;
}

export const WORD_GROUPS = [
  'causes',
  'limits',
  'parts',
  'needs',
  'efforts',
  'severities',
  'missing',
  'step_kinds',
  'phases',
  'step_methods',
  'kernel_families',
  'layout_classes',
  'copy_kinds',
  'slice_kinds',
  'redactions',
] as const;
export type WordGroup = (typeof WORD_GROUPS)[number];
export type Vocabulary = Readonly<Record<WordGroup, readonly Word[]>>;

let groups: ReadonlyMap<WordGroup, ReadonlyMap<string, Word>> = new Map();

export function setVocabulary(vocabulary: Vocabulary): void {
  groups = new Map(
    WORD_GROUPS.map(group => [group, new Map(vocabulary[group].map(word => [word.id, word]))]),
  );
}

/** The word of an id; an id that a newer program made stands for itself. */
export function word(group: WordGroup, id: string): Word {
  const found = groups.get(group)?.get(id);
  return found ?? {id, letter: '?', label: id, short: id, waits: `for ${id}`, definition: ''};
}

/** All words of a group, in the program's order. */
export function words(group: WordGroup): readonly Word[] {
  return [...(groups.get(group)?.values() ?? [])];
}
