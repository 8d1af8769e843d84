// What a person calls a slice: the leaf of a C++ kernel's signature, a Python function without its
// file. The full name stands in the details and is what is copied. Pure: runs in node.

const PYTHON = /^.*\.py\(\d+\): (.+)$/;

export function shortName(name: string): string {
  const step = /^(?:Profiler)?Step[#_ ](\d+)$/i.exec(name);
  if (step?.[1] !== undefined) return `step ${step[1]}`;
  if (name.startsWith('enumerate(DataLoader)')) return 'DataLoader next';
  const module = /^nn\.Module: (.+)$/.exec(name);
  if (module?.[1] !== undefined) return module[1];
  const python = PYTHON.exec(name);
  if (python?.[1] !== undefined) return python[1];
  if (!name.includes('::') && !name.includes('<') && !name.startsWith('void ')) return name;
  // "aten::conv2d", "Optimizer.step#SGD.step": no signature, already short.
  if (!/[<(]/.test(name)) return name;
  return leafOfSignature(name) ?? name;
}

/** "void at::native::kernel<4, F<int> >(int, X)" -> "kernel<...>". */
function leafOfSignature(name: string): string | undefined {
  const text = name.replaceAll('(anonymous namespace)', '').replace(/^(static |void )+/, '');
  let depth = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === '<' || c === '(') {
      if (depth === 0) return finish(text.slice(from, i), c === '<');
      depth++;
    } else if (c === ':' && text[i + 1] === ':') {
      from = i + 2;
      i++;
    } else if (c === ' ') {
      from = i + 1;
    }
  }
  return finish(text.slice(from), false);
}

function finish(leaf: string, isTemplate: boolean): string | undefined {
  if (!/^[\w$~.-]+$/.test(leaf) || leaf === 'operator') return undefined;
  return isTemplate ? `${leaf}<\u2026>` : leaf;
}
