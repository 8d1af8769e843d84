// How long the work of a frame takes: the last 600 frames, ten seconds at 60 Hz.

const KEPT = 600;

export class FrameStats {
  private readonly workMs = new Float32Array(KEPT);
  private count = 0;

  add(ms: number): void {
    this.workMs[this.count++ % KEPT] = ms;
  }

  get frames(): number {
    return this.count;
  }

  /** Nearest-rank percentile of the work per frame, 0 when nothing was drawn. */
  percentile(p: number): number {
    const n = Math.min(this.count, KEPT);
    if (n === 0) return 0;
    const sorted = this.workMs.slice(0, n).sort();
    return sorted[Math.min(n - 1, Math.max(0, Math.ceil((p / 100) * n) - 1))] as number;
  }

  reset(): void {
    this.count = 0;
  }
}
