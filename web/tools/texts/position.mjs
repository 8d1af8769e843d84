// Whether a string of the source is a text that a person reads, told by where it stands.
//
//   'text'   it is one
//   'never'  it is a key, a class, a route, something compared
//   'maybe'  the position does not tell: two words or more are a text then (find.mjs)
//
// A comment right before a string, list or object decides for all strings in it:
// /* text */ or /* no text */.
import ts from 'typescript';

const {SyntaxKind: Kind} = ts;

/** Attributes of elements and of components that people see or hear. */
const TEXT_ATTRIBUTES = new Set([
  ...['title', 'aria-label', 'aria-description', 'aria-roledescription', 'aria-valuetext'],
  ...['placeholder', 'alt', 'label'],
]);

/** The same, where only our own components have them. */
const COMPONENT_TEXTS = new Set([
  ...['text', 'what', 'words', 'button', 'sure', 'hint', 'none', 'aside', 'problem', 'name'],
  ...['advice', 'missing', 'note', 'summary', 'heading', 'unit', 'done', 'said', 'of', 'prefix'],
]);

/** Members of objects, variables and functions with such names hold texts. */
const TEXT_NAMES =
  /^(text|label|title|hint|what|many|missing|definition|advice|word|words|short|said|note|message|summary|heading|sentence|why|caption|nothing|empty|aria-label|placeholder)$|(_LABELS?|_TEXTS?|_WORDS?|_TITLES?|_HINTS?|_MESSAGES?)$|[a-z](Labels?|Texts?|Words?|Titles?|Hints?|Sentences?)$/;

/** Members and attributes with such names never do. */
const OTHER_NAMES =
  /^(class|className|id|key|kind|href|src|type|role|style|line|font|FONT|FACES|smallFont|boldFont|command|code|d|path|method|format|sort|order|metric|sandbox|rel|autocomplete|page|query|sql|scope|data-.*|aria-(?!label|description|roledescription|valuetext).*)$/;

/** Functions whose arguments are texts, and which of them; `plural` has its own rule. */
const TEXT_CALLS = new Map([
  ['lazy', [0]],
  ['useTitle', [0]],
  ['confirm', [0]],
  ['say', undefined],
  ['unbroken', [0]],
  ['sentence', [0]],
  ['head', [1, 2]],
  ['button', [1, 3]],
  ['when', [1]],
]);
const SETS_TEXT = /^set(Said|Problem|Error|Text|Message|Note|Failure)$/;

/** Functions of the language and the browser that take keys, never texts. */
const OTHER_CALLS = new Set([
  ...['addEventListener', 'removeEventListener', 'querySelector', 'querySelectorAll', 'closest'],
  ...[
    'getElementById',
    'createElement',
    'createElementNS',
    'getContext',
    'setAttribute',
    'matches',
  ],
  ...['getAttribute', 'removeAttribute', 'setProperty', 'getPropertyValue', 'matchMedia'],
  ...['startsWith', 'endsWith', 'includes', 'indexOf', 'split', 'replace', 'replaceAll', 'test'],
  ...['localeCompare', 'toLocaleString', 'padStart', 'padEnd', 'get', 'has', 'set', 'delete'],
  ...['getItem', 'setItem', 'removeItem', 'open', 'setRequestHeader', 'postMessage', 'import'],
  ...['getJson', 'apiUrl', 'put', 'send', 'sendFor', 'fetch', 'word', 'topicOf', 'useResource'],
  ...['measureText', 'dispatchEvent', 'getExtension', 'createPattern', 'append', 'or', 'join'],
  ...['getUniformLocation', 'getAttribLocation', 'json', 'parse', 'stringify', 'withParams'],
]);

/** Elements whose content is what somebody types, or what a program prints. */
const CODE_TAGS = new Set(['code', 'kbd', 'pre', 'samp', 'var', 'style', 'script']);

/** Methods that hand on the texts of a list. */
const LIST_METHODS = new Set([
  'join',
  'filter',
  'map',
  'flatMap',
  'flat',
  'concat',
  'slice',
  'trim',
  'toLowerCase',
  'at',
]);

const COMPARISONS = new Set([
  ...[Kind.EqualsEqualsEqualsToken, Kind.ExclamationEqualsEqualsToken],
  ...[Kind.EqualsEqualsToken, Kind.ExclamationEqualsToken, Kind.InKeyword],
  ...[Kind.LessThanToken, Kind.GreaterThanToken, Kind.LessThanEqualsToken],
  ...[Kind.GreaterThanEqualsToken],
]);

export function tagOf(element) {
  if (ts.isJsxFragment(element)) return '';
  const opening = ts.isJsxElement(element) ? element.openingElement : element;
  return opening.tagName.getText();
}

export const isComponent = tag => /^[A-Z]/.test(tag);
export const isCode = tag => CODE_TAGS.has(tag);

function markOf(node, source) {
  const from = node.getFullStart();
  const ranges = [
    ...(ts.getTrailingCommentRanges(source.text, from) ?? []),
    ...(ts.getLeadingCommentRanges(source.text, from) ?? []),
  ];
  const last = ranges.at(-1);
  if (!last) return undefined;
  const comment = source.text.slice(last.pos, last.end);
  if (/^\/\* texts? \*\/$/.test(comment)) return 'text';
  if (/^\/\* no texts? \*\/$/.test(comment)) return 'never';
  return undefined;
}

function nameTells(name) {
  if (TEXT_NAMES.test(name)) return 'text';
  if (OTHER_NAMES.test(name)) return 'never';
  return 'maybe';
}

function attributeTells(attribute) {
  const name = attribute.name.getText();
  const tag = tagOf(attribute.parent.parent);
  if (TEXT_ATTRIBUTES.has(name)) return 'text';
  if (!isComponent(tag)) return 'never';
  if (COMPONENT_TEXTS.has(name)) return 'text';
  return nameTells(name);
}

function calleeName(call) {
  const {expression} = call;
  if (ts.isIdentifier(expression)) return expression.text;
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text;
  return expression.kind === Kind.ImportKeyword ? 'import' : '';
}

function argumentTells(call, node) {
  const name = calleeName(call);
  const at = call.arguments.indexOf(node);
  if (TEXT_CALLS.has(name)) {
    const which = TEXT_CALLS.get(name);
    return which === undefined || which.includes(at) ? 'text' : 'never';
  }
  if (SETS_TEXT.test(name)) return 'text';
  return OTHER_CALLS.has(name) ? 'never' : 'maybe';
}

function nameOfFunction(fn) {
  if (fn.name) return fn.name.getText();
  const {parent} = fn;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent))
    return parent.name.getText();
  return '';
}

/** What `node`, a string or a template, is by its position. */
export function positionTells(node, source) {
  let at = node;
  for (;;) {
    const mark = markOf(at, source);
    if (mark) return mark;
    const {parent} = at;
    if (!parent) return 'never';
    if (ts.isTypeNode(parent)) return 'never';
    if (
      ts.isParenthesizedExpression(parent) ||
      ts.isAsExpression(parent) ||
      ts.isSatisfiesExpression(parent) ||
      ts.isNonNullExpression(parent) ||
      ts.isSpreadElement(parent) ||
      ts.isTemplateSpan(parent) ||
      ts.isTemplateExpression(parent)
    ) {
      at = parent;
    } else if (ts.isConditionalExpression(parent)) {
      if (parent.condition === at) return 'never';
      at = parent;
    } else if (ts.isBinaryExpression(parent)) {
      const operator = parent.operatorToken.kind;
      if (COMPARISONS.has(operator)) return 'never';
      if (operator === Kind.EqualsToken || operator === Kind.PlusEqualsToken) {
        if (parent.right !== at) return 'never';
        const {left} = parent;
        if (ts.isPropertyAccessExpression(left)) return assignedTells(left);
        return ts.isIdentifier(left) ? nameTells(left.text) : 'never';
      }
      at = parent;
    } else if (ts.isArrayLiteralExpression(parent)) {
      at = parent;
    } else if (ts.isPropertyAccessExpression(parent)) {
      const call = parent.parent;
      if (!ts.isCallExpression(call) || call.expression !== parent) return 'never';
      if (!LIST_METHODS.has(parent.name.text)) return 'never';
      at = call;
    } else if (ts.isArrowFunction(parent) || ts.isReturnStatement(parent)) {
      const fn = ts.isArrowFunction(parent) ? parent : ts.findAncestor(parent, ts.isFunctionLike);
      if (!fn || (fn === parent && fn.body !== at)) return 'never';
      const call = fn.parent;
      if (
        ts.isCallExpression(call) &&
        call.arguments.includes(fn) &&
        LIST_METHODS.has(calleeName(call))
      ) {
        at = call;
        continue;
      }
      return nameTells(nameOfFunction(fn));
    } else if (ts.isJsxExpression(parent)) {
      const owner = parent.parent;
      if (ts.isJsxAttribute(owner)) return attributeTells(owner);
      return isCode(tagOf(owner)) ? 'never' : 'text';
    } else if (ts.isJsxAttribute(parent)) {
      return attributeTells(parent);
    } else if (ts.isPropertyAssignment(parent)) {
      if (parent.name === at) return 'never';
      const told = nameTells(parent.name.getText().replace(/^'|'$/g, ''));
      if (told !== 'maybe') return told;
      // a table of words is named as such itself
      at = parent.parent;
      if (!isInTable(at)) return styleTells(at);
    } else if (ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)) {
      return nameTells(parent.name.getText());
    } else if (ts.isBindingElement(parent) || ts.isParameter(parent)) {
      return nameTells(parent.name.getText());
    } else if (ts.isCallExpression(parent)) {
      return parent.expression === at ? 'never' : argumentTells(parent, at);
    } else if (ts.isNewExpression(parent)) {
      return /Error$/.test(parent.expression.getText()) ? 'text' : 'never';
    } else {
      return 'never';
    }
  }
}

/** `document.title = ...`, `element.style.color = ...` */
function assignedTells(left) {
  const name = left.name.text;
  if (name === 'textContent' || name === 'innerText') return 'text';
  const told = nameTells(name);
  if (told !== 'maybe') return told;
  return /Style$|^font$|^cursor$|^textAlign$|^textBaseline$/.test(name) ? 'never' : 'maybe';
}

/** Objects of objects up to the variable that names them all. */
function isInTable(object) {
  const {parent} = object;
  return (
    ts.isVariableDeclaration(parent) ||
    ts.isAsExpression(parent) ||
    ts.isSatisfiesExpression(parent)
  );
}

function styleTells(object) {
  const attribute = ts.findAncestor(object, ts.isJsxAttribute);
  return attribute && attribute.name.getText() === 'style' ? 'never' : 'maybe';
}
