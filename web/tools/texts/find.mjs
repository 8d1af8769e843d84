// The texts of a source file, and the same file in another language.
//
// A text is its English words with places for what is filled in: "{0} of {1}" for values,
// "<0>settings</0>" and "<0/>" for elements. A translation may put the places into any order.
import ts from 'typescript';
import {isCode, positionTells, tagOf} from './position.mjs';

/** What a number is said in, with its unit: the same in every language. */
const SYMBOLS =
  /^(?:\{\d+\}|<\/?\d+\/?>|[^\p{L}]|\b(?:[nµm]?s|min|h|[kMGTP]?B|px|UTC|TFLOP|kWh|Lacuna)\b)*$/u;

/** A word as sentences have them, and what no sentence has. */
const WORD = /^[(“‘]*\p{L}{2,}(?:[’'-]\p{L}+)*[.,:;!?)”’…]*$/u;
const CODE = /[=<>{}[\]_#$/\\|&*;]|\w\(|--|(?<!\p{L})\d+(?:px|fr)\b|\p{Ll}\p{Lu}/u;

/** Whether words stand in it: two, or one with something filled in. */
function isSentence(key) {
  const bare = key.replace(/\{\d+\}|<\/?\d+\/?>/g, '\u0000');
  if (CODE.test(bare)) return false;
  const tokens = bare.split(/\s+/).filter(token => token !== '');
  const words = tokens.filter(token => WORD.test(token.replaceAll('\u0000', '')));
  const filled = tokens.filter(token => token.includes('\u0000') && !words.includes(token));
  return words.length > 0 && words.length + filled.length > 1;
}

/** Elements whose place in a sentence matters; others at its ends are not part of it. */
const INLINE = new Set(['a', 'b', 'strong', 'em', 'i', 'code', 'kbd', 'abbr', 'ViewLink']);

/** @typedef {{key: string, start: number, end: number, place: string, notes: string[], write: (to: unknown) => string}} Found */

const isText = node => ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);

/** "ranks" of "rank", as base/format.ts does. */
const many = one => (one.endsWith('ch') ? `${one}es` : `${one}s`);

/** Every text of a file in the order of the source. Texts within texts come behind them. */
export function findTexts(name, content) {
  const kind = name.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(name, content, ts.ScriptTarget.Latest, true, kind);
  const found = [];
  const rewritten = [];
  visit(source);
  return Object.assign(found, {rewritten});

  function visit(node) {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || ts.isTypeNode(node)) return;
    if (isPlural(node)) notePlural(node);
    else if (isCounted(node)) noteCounted(node);
    else if (isText(node) && !isPart(node)) noteString(node);
    else if (ts.isJsxElement(node) || ts.isJsxFragment(node)) noteChildren(node);
    ts.forEachChild(node, visit);
  }

  /** Strings that another text holds already. */
  function isPart(node) {
    return found.some(text => text.holds?.has(node));
  }

  function note(node, text) {
    const counts = text.places.map(
      (part, at) => `${part.open === undefined ? `{${at}}` : `<${at}>`} ${shortOf(part.source)}`,
    );
    found.push({...text, place: `${name.replace(/^src\//, '')}: ${placeOf(node)}`, notes: counts});
  }

  function noteString(node) {
    const told = positionTells(node, source);
    if (told === 'never') return;
    const parts = partsOf(node);
    const message = messageOf(parts);
    if (told === 'maybe' && !isSentence(message.key)) return;
    if (SYMBOLS.test(message.key) || /^#[0-9a-f]{3,8}$/.test(message.key)) return;
    const inAttribute = ts.isJsxAttribute(node.parent);
    note(node, {
      ...message,
      start: node.getStart(),
      end: node.end,
      write: (to, inner) => {
        const text = templateOf(to, message, inner);
        return inAttribute ? `{${text}}` : text;
      },
    });
  }

  /** `plural(count, 'rank')`: the forms of a word with its number. */
  function isPlural(node) {
    return (
      ts.isCallExpression(node) &&
      node.expression.getText() === 'plural' &&
      node.arguments.slice(1).every(ts.isStringLiteralLike)
    );
  }

  /** `plural(count, unit)`: a word that is chosen while the page runs. */
  function isCounted(node) {
    return ts.isIdentifier(node) && node.text === 'plural' && isCallOfPlural(node.parent, node);
  }

  function isCallOfPlural(call, callee) {
    return ts.isCallExpression(call) && call.expression === callee && !isPlural(call);
  }

  function noteCounted(node) {
    rewritten.push({start: node.getStart(), end: node.end, write: () => 'pluralOf'});
  }

  function notePlural(node) {
    const [count, one, several] = node.arguments;
    const forms = {one: `{0} ${one.text}`, other: `{0} ${several?.text ?? many(one.text)}`};
    note(node, {
      key: `${forms.one} | ${forms.other}`,
      forms,
      lead: '',
      tail: '',
      places: [{source: count.getText()}],
      holds: new Set(node.arguments.slice(1)),
      start: node.getStart(),
      end: node.end,
      write: (to, inner) =>
        `pluralForm(${inner(count.getStart(), count.end)}, ${JSON.stringify(to)})`,
    });
  }

  /** What stands between the tags of an element, where any of it is a text of its own. */
  function noteChildren(node) {
    if (isCode(tagOf(node)) || node.children.some(isPart)) return;
    const runs = childParts(node);
    const holds = new Set();
    const kept = trimmed(runs);
    if (!kept.some(part => part.text !== undefined && /\p{L}/u.test(part.text))) return;
    const message = messageOf(kept);
    if (SYMBOLS.test(message.key)) return;
    // one string in braces is found as such
    if (kept.length === 1 && kept[0].node && !ts.isJsxText(kept[0].node)) return;
    const collect = parts => {
      for (const part of parts) {
        if (part.holds) part.holds.forEach(held => holds.add(held));
        if (part.inner) collect(part.inner);
      }
    };
    collect(kept);
    note(node, {
      ...message,
      holds,
      start: kept[0].start,
      end: kept.at(-1).end,
      write: (to, inner) => childrenOf(to, message, inner),
    });
  }

  function childParts(element) {
    const parts = [];
    const children = element.children;
    children.forEach((child, at) => {
      const start = child.pos;
      const {end} = child;
      if (ts.isJsxText(child)) {
        const text = jsxText(child.text);
        if (text !== '') parts.push({text, node: child, start, end, holds: [child]});
      } else if (ts.isJsxExpression(child)) {
        if (!child.expression) return;
        const {expression} = child;
        if (isText(expression) && positionTells(expression, source) === 'text') {
          for (const part of partsOf(expression))
            parts.push({
              ...part,
              node: expression,
              start,
              end,
              asString: true,
              holds: [expression],
            });
        } else {
          parts.push({source: expression.getText(), from: expression, start, end});
        }
      } else {
        parts.push(elementPart(child, start, end, at));
      }
    });
    return parts;
  }

  /** An element in a sentence: with the words in it, where there is nothing else in it. */
  function elementPart(child, start, end) {
    const whole = {
      source: openingOf(child),
      element: child,
      start,
      end,
      open: '',
      tag: tagOf(child),
    };
    if (!ts.isJsxElement(child) || isCode(tagOf(child))) return whole;
    const inner = childParts(child);
    const plain = inner.every(part => part.text !== undefined);
    if (!plain || !inner.some(part => /\p{L}/u.test(part.text))) return whole;
    return {...whole, inner};
  }

  /** Without the elements and conditions at its ends that are no part of the sentence. */
  function trimmed(parts) {
    const isOutside = part =>
      (part.element !== undefined && !INLINE.has(part.tag)) ||
      (part.from !== undefined && hasElement(part.from)) ||
      (part.text !== undefined && part.text.trim() === '');
    let [from, to] = [0, parts.length];
    while (from < to && isOutside(parts[from])) from += 1;
    while (to > from && isOutside(parts[to - 1])) to -= 1;
    return parts.slice(from, to);
  }

  function hasElement(node) {
    if (ts.isJsxElement(node) || ts.isJsxSelfClosingElement(node) || ts.isJsxFragment(node))
      return true;
    return ts.forEachChild(node, child => hasElement(child) || undefined) ?? false;
  }

  /** A string or a template as text and what is filled in. */
  function partsOf(node) {
    if (!ts.isTemplateExpression(node)) return [{text: node.text}];
    const parts = [{text: node.head.text}];
    for (const span of node.templateSpans) {
      parts.push({source: span.expression.getText(), from: span.expression});
      parts.push({text: span.literal.text});
    }
    return parts;
  }

  function templateOf(to, message, inner) {
    const tokens = parse(to);
    let text = '';
    for (const token of [message.lead, ...tokens, message.tail]) {
      if (typeof token === 'string') {
        text += token.replace(/[\\`]|\$(?=\{)/g, '\\$&');
      } else {
        const {from} = message.places[token.at];
        text += `\${${inner(from.getStart(), from.end)}}`;
      }
    }
    return `\`${text}\``;
  }

  function childrenOf(to, message, inner) {
    const write = tokens =>
      tokens
        .map(token => {
          if (typeof token === 'string') return token === '' ? '' : `{${JSON.stringify(token)}}`;
          const place = message.places[token.at];
          if (place.from) {
            const value = inner(place.from.getStart(), place.from.end);
            return place.asString ? `{\`\${${value}}\`}` : `{${value}}`;
          }
          const {element} = place;
          if (!token.inner) return inner(element.pos, element.end);
          const opening = element.openingElement;
          const closing = element.closingElement;
          return `${inner(opening.pos, opening.end)}${write(token.inner)}${closing.getText()}`;
        })
        .join('');
    return write([message.lead, ...parse(to), message.tail]);
  }
}

/** The words with their places, and the spaces around them, which no translation changes. */
function messageOf(parts) {
  const places = [];
  const say = list =>
    list
      .map(part => {
        if (part.text !== undefined) return part.text;
        const at = places.push(part) - 1;
        if (part.open === undefined) return `{${at}}`;
        return part.inner ? `<${at}>${say(part.inner)}</${at}>` : `<${at}/>`;
      })
      .join('');
  const [, lead, key, tail] = /^(\s*)(.*?)(\s*)$/su.exec(say(parts));
  return {lead, key, tail, places};
}

/** A text cut into words and places. */
export function parse(text) {
  const root = [];
  const open = [{at: -1, list: root}];
  let from = 0;
  const pattern = /\{(\d+)\}|<(\d+)\/>|<(\d+)>|<\/(\d+)>/g;
  for (let hit; (hit = pattern.exec(text)); from = pattern.lastIndex) {
    const {list} = open.at(-1);
    if (hit.index > from) list.push(text.slice(from, hit.index));
    const [, value, element, opening, closing] = hit;
    if (opening !== undefined) {
      const token = {at: Number(opening), inner: []};
      list.push(token);
      open.push({at: token.at, list: token.inner});
    } else if (closing !== undefined) {
      if (open.at(-1).at !== Number(closing)) throw new Error(`${hit[0]} closes nothing: ${text}`);
      open.pop();
    } else {
      list.push({at: Number(value ?? element), written: hit[0]});
    }
  }
  if (open.length > 1) throw new Error(`<${open.at(-1).at}> is not closed: ${text}`);
  if (from < text.length) root.push(text.slice(from));
  return root;
}

/** The places of a text, sorted: a translation has the same. */
export function placesOf(text) {
  return (text.match(/\{\d+\}|<\/?\d+\/?>/g) ?? []).sort().join(' ');
}

/** What is left of the text between tags: lines are trimmed and joined by a space. */
function jsxText(raw) {
  const lines = raw.split('\n');
  return lines
    .map((line, at) => {
      const start = at === 0 ? line : line.replace(/^[ \t]+/, '');
      return at === lines.length - 1 ? start : start.replace(/[ \t]+$/, '');
    })
    .filter(line => line !== '')
    .join(' ');
}

function openingOf(element) {
  const tag = tagOf(element);
  return `<${tag}>`;
}

const shortOf = text => {
  const flat = text.replace(/\s+/g, ' ');
  return flat.length > 40 ? `${flat.slice(0, 39)}…` : flat;
};

/** The function or constant around a text, and what it is there. */
function placeOf(node) {
  const names = [];
  for (let at = node; at.parent; at = at.parent) {
    const {parent} = at;
    if (ts.isJsxAttribute(parent) || ts.isPropertyAssignment(parent)) {
      if (names.length === 0) names.push(parent.name.getText().replace(/^'|'$/g, ''));
    } else if (ts.isJsxExpression(parent) && names.length === 0) {
      if (!ts.isJsxAttribute(parent.parent)) names.push(openingOf(parent.parent));
    } else if (
      ts.isSourceFile(parent.parent ?? parent) ||
      (ts.isVariableDeclaration(parent) && ts.isSourceFile(parent.parent.parent.parent))
    ) {
      const owner = ts.isVariableStatement(parent) ? at.declarations?.[0] : parent;
      const name = owner?.name?.getText();
      if (name) names.push(name);
      break;
    }
  }
  if (names.length < 2 && (ts.isJsxElement(node) || ts.isJsxFragment(node)))
    names.unshift(openingOf(node));
  return names.reverse().join(' ');
}

/**
 * The file with its texts replaced. `translate` gives the words for a text, or undefined to keep
 * what there is.
 */
export function replaceTexts(name, content, translate) {
  const found = findTexts(name, content);
  let usesPlural = false;
  const inner = (start, end) => {
    let result = '';
    let from = start;
    // the outermost texts of the stretch; each writes what is in it itself
    const here = [...found, ...found.rewritten].filter(
      text => text.start >= start && text.end <= end,
    );
    for (const text of outermost(here)) {
      const words = text.key === undefined ? undefined : translate(text);
      result += content.slice(from, text.start) + text.write(words, inner);
      usesPlural ||= text.forms !== undefined || text.key === undefined;
      from = text.end;
    }
    return result + content.slice(from, end);
  };
  const body = inner(0, content.length);
  return usesPlural ? `import {pluralForm, pluralOf} from 'lacuna:plural';${body}` : body;
}

function outermost(texts) {
  const sorted = [...texts].sort((a, b) => a.start - b.start || b.end - a.end);
  let end = -1;
  return sorted.filter(text => {
    if (text.start < end) return false;
    end = text.end;
    return true;
  });
}
