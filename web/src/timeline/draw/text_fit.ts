// Text in slices: only if it fits, shortened in the middle, because both ends of a kernel's name
// tell something. Pure: the measuring function comes from outside.

import {elideMiddle} from '../data/elide';

/** Fewer characters than this say nothing. */
const CHARS_MIN = 3;

/** Measures once per text and remembers; a font change needs a new one. */
export class TextFitter {
  private readonly widths = new Map<string, number>();

  constructor(private readonly measure: (text: string) => number) {}

  width(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      // Bounded: a trace may have a million names, a screen shows some hundred.
      if (this.widths.size > 20_000) this.widths.clear();
      width = this.measure(text);
      this.widths.set(text, width);
    }
    return width;
  }

  /** The text, or as much of it as fits `room`; '' when that is less than three characters. */
  fit(text: string, room: number): string {
    if (text === '' || room <= 0) return '';
    const whole = this.width(text);
    if (whole <= room) return text;
    // A guess by the mean width of a character, then measured: wide ones gather anywhere.
    let chars = Math.min(text.length - 1, Math.floor((room / whole) * text.length));
    for (; chars >= CHARS_MIN; chars--) {
      const cut = elideMiddle(text, chars);
      if (this.width(cut) <= room) return cut;
    }
    return '';
  }
}
