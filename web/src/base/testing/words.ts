// Words for tests: what a label says shows where it came from.
import {CAUSES} from '../causes';
import {setVocabulary, WORD_GROUPS, type Vocabulary, type WordGroup} from '../vocabulary';

const IDS: Readonly<Partial<Record<WordGroup, readonly string[]>>> = {
  causes: CAUSES,
  limits: ['gpu', 'inference', 'few', 'unknown'],
  parts: ['compute', 'exposed_comm', 'exposed_copy', 'exposed_memset', 'idle'],
  needs: ['data', 'gpu', 'copies', 'host', 'comm'],
  efforts: ['setting', 'lines', 'rewrite', 'hardware'],
  step_kinds: ['train', 'validation', 'checkpoint', 'other'],
  phases: ['start_up', 'warm_up', 'training', 'steps', 'checkpoint', 'end'],
  kernel_families: ['other', 'gemm', 'norm', 'layout'],
  layout_classes: ['L', 'K'],
  copy_kinds: ['HtoD', 'DtoH'],
};
const LETTERS: Readonly<Partial<Record<WordGroup, string>>> = {
  causes: 'DSLCAMNWHP?',
  limits: 'Gi~?',
};

/** Labels are "GROUP ID". */
export function setTestWords(): void {
  const lists = WORD_GROUPS.map(group => [
    group,
    (IDS[group] ?? []).map((id, index) => ({
      id,
      letter: LETTERS[group]?.[index] ?? '',
      label: `${group} ${id}`,
      short: `short ${id}`,
      waits: group === 'causes' ? `waits ${id}` : '',
      definition: `definition ${id}`,
    })),
  ]);
  setVocabulary(Object.fromEntries(lists) as unknown as Vocabulary);
}
