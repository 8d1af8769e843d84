// The rate of a process: amount over the last few seconds.

const SPAN_MS = 4000;

export class RateMeter {
  private readonly samples: {readonly atMs: number; readonly amount: number}[] = [];

  /** `amount` is the total so far. */
  add(atMs: number, amount: number): void {
    this.samples.push({atMs, amount});
    while (this.samples.length > 2 && (this.samples[1]?.atMs ?? atMs) < atMs - SPAN_MS)
      this.samples.shift();
  }

  /** Amount per second; 0 until two moments apart are known. */
  perSecond(): number {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (!first || !last || last.atMs <= first.atMs) return 0;
    return ((last.amount - first.amount) * 1000) / (last.atMs - first.atMs);
  }
}
