// Checks of what comes from outside: a shape turns an unknown value into a typed one or says
// where it is wrong. `null` and a missing member both become `undefined`.

export class ShapeError extends Error {
  constructor(
    readonly path: string,
    readonly expected: string,
  ) {
    super(`${path || 'the reply'}: expected ${expected}`);
    this.name = 'ShapeError';
  }
}

export type Shape<T> = (value: unknown, path: string) => T;
export type Infer<S> = S extends Shape<infer T> ? T : never;

/** Control characters except tab and line feed, and those that change the direction of text. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * A text with every character seen: names come from traces, and one that is not seen makes a name
 * look like another, or the text after it read backwards.
 */
export function seen(text: string): string {
  return text.replace(UNSEEN, unseen => {
    const code = unseen.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd';
  });
}

export const str: Shape<string> = (value, path) => {
  if (typeof value !== 'string') throw new ShapeError(path, 'a text');
  return seen(value);
};

export const num: Shape<number> = (value, path) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new ShapeError(path, 'a number');
  return value;
};

export const bool: Shape<boolean> = (value, path) => {
  if (typeof value !== 'boolean') throw new ShapeError(path, 'true or false');
  return value;
};

/** Anything: for members that are shown as they are. */
export const any: Shape<unknown> = value => value;

/** One of these words; missing, or a word that only a newer server knows, is undefined. */
export function oneOf<const W extends string>(words: readonly W[]): Shape<W | undefined> {
  return value => words.find(word => word === value);
}

/** A value that may be missing or null. */
export function opt<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value, path) => (value === undefined || value === null ? undefined : shape(value, path));
}

/** A value that may be missing or null, with what stands for it then. */
export function or<T>(shape: Shape<T>, fallback: T): Shape<T> {
  return (value, path) => (value === undefined || value === null ? fallback : shape(value, path));
}

export function list<T>(item: Shape<T>): Shape<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw new ShapeError(path, 'a list');
    let at = 0;
    try {
      return value.map((entry: unknown, index) => item(entry, ((at = index), '')));
    } catch (error) {
      throw within(error, `${path}[${at}]`);
    }
  };
}

/** Where an entry of a list is wrong. Told afterwards: a list may have 100,000 entries, and the text of
 *  each one's place would take longer than all else. */
function within(error: unknown, place: string): unknown {
  if (!(error instanceof ShapeError)) return error;
  const {path, expected} = error;
  return new ShapeError(/^(\[|$)/.test(path) ? place + path : `${place}.${path}`, expected);
}

/** A list of fixed length. */
export function tuple<A, B>(a: Shape<A>, b: Shape<B>): Shape<readonly [A, B]> {
  return (value, path) => {
    if (!Array.isArray(value) || value.length !== 2) throw new ShapeError(path, 'a pair');
    return [a(value[0], `${path}[0]`), b(value[1], `${path}[1]`)];
  };
}

/** An object with any member names and values of one shape. */
export function dict<T>(item: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value, path) => {
    const entries = Object.entries(asObject(value, path));
    return Object.fromEntries(entries.map(([key, v]) => [key, item(v, `${path}.${key}`)]));
  };
}

type Members = Readonly<Record<string, Shape<unknown>>>;

/** An object with these members; others are left out. */
export function obj<M extends Members>(members: M): Shape<{readonly [K in keyof M]: Infer<M[K]>}> {
  const entries = Object.entries(members);
  return (value, path) => {
    const source = asObject(value, path);
    const result: Record<string, unknown> = {};
    for (const [key, shape] of entries)
      result[key] = shape(source[key], path === '' ? key : `${path}.${key}`);
    return result as {readonly [K in keyof M]: Infer<M[K]>};
  };
}

function asObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ShapeError(path, 'an object');
  return value as Record<string, unknown>;
}
