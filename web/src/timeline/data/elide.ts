// Text shortened in its middle, because both ends of a kernel's name tell something. Pure.

const ELLIPSIS = '\u2026';
/** Below this many characters an end of the text would not say anything: the head alone. */
const BOTH_ENDS_MIN = 9;

/** Keep `chars` characters: of both ends, three of five in front; of the head when they are few. */
export function elideMiddle(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const points = [...text];
  if (points.length <= chars) return text;
  const head = chars < BOTH_ENDS_MIN ? chars : Math.ceil(chars * 0.6);
  const tail = chars - head;
  const end = tail > 0 ? points.slice(-tail).join('') : '';
  return points.slice(0, head).join('') + ELLIPSIS + end;
}
