// Which of the two renderers: WebGL2 on a real GPU, the CPU for software GL (virtual machines,
// remote desktops, CI), where instancing is 20 times slower than drawing without it.

import {CpuRenderer} from './cpu_renderer';
import type {Renderer, Scene} from './scene';
import {WebGlRenderer} from './webgl_renderer';

type RendererKind = 'webgl' | 'cpu';
export type RendererChoice = 'auto' | RendererKind;

const SOFTWARE = /swiftshader|llvmpipe|softpipe|basic render|software|mesa offscreen|virgl/i;
/** A GPU draws the probe in a fraction of this; software takes many times as long. */
const PROBE_MS = 10;

/** `?renderer=webgl` or `?renderer=cpu` overrides the choice. */
export function choiceFromQuery(search: string): RendererChoice {
  const wanted = new URLSearchParams(search).get('renderer');
  return wanted === 'webgl' || wanted === 'cpu' ? wanted : 'auto';
}

/** Whether a renderer string of the driver names a rasterizer that runs on the CPU. */
export const isSoftwareGl = (driver: string): boolean => SOFTWARE.test(driver);

/** A browser that has not given the context back by then is not waited for. */
const RESTORED_WITHIN_MS = 3000;
/** Trying WebGL takes 50 ms, so the first picture does not wait for it. */
const TRIED_AFTER_MS = 1500;
const STORAGE_KEY = 'lacuna.renderer';

/**
 * Never fails when WebGL is missing: the CPU draws then. `auto` begins with what was best the last
 * time in this browser, the CPU at first, and changes over when a try says otherwise.
 * @param onLost told when the browser took the graphics context away, and when there is a picture
 *   to draw again, for which the scene has to be drawn anew
 */
export function createRenderer(
  canvas: HTMLCanvasElement,
  choice: RendererChoice,
  onLost: (isLost: boolean) => void,
): Renderer {
  return new ChosenRenderer(canvas, choice, onLost);
}

class ChosenRenderer implements Renderer {
  private drawing: Renderer;
  private giveUp: ReturnType<typeof setTimeout> | undefined;
  private isDisposed = false;
  private readonly trial: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private canvas: HTMLCanvasElement,
    choice: RendererChoice,
    private readonly onLost: (isLost: boolean) => void,
  ) {
    this.drawing = this.create(choice === 'auto' ? recall() : choice);
    if (choice === 'auto') this.trial = setTimeout(() => this.choose(), TRIED_AFTER_MS);
  }

  get name(): RendererKind {
    return this.drawing.name;
  }

  draw(scene: Scene): boolean {
    return this.drawing.draw(scene);
  }

  dispose(): void {
    this.isDisposed = true;
    clearTimeout(this.trial);
    clearTimeout(this.giveUp);
    this.drawing.dispose();
  }

  private create(kind: RendererKind): Renderer {
    if (kind === 'cpu') return new CpuRenderer(this.canvas);
    const {canvas} = this;
    const made = WebGlRenderer.create(canvas, isLost => {
      // one that is done with gives its context back, too
      if (this.isDisposed || canvas !== this.canvas) return;
      clearTimeout(this.giveUp);
      if (isLost) this.giveUp = setTimeout(() => this.replace('cpu'), RESTORED_WITHIN_MS);
      this.onLost(isLost);
    });
    if (!made) this.renew(); // it may have a context of WebGL that can do nothing
    return made ?? new CpuRenderer(this.canvas);
  }

  private choose(): void {
    const best = isFastGl() ? 'webgl' : 'cpu';
    remember(best);
    if (best !== this.drawing.name) this.replace(best);
  }

  /** A canvas of its own: one that had WebGL can never have a 2D context, nor the other way round. */
  private renew(): void {
    const fresh = this.canvas.cloneNode() as HTMLCanvasElement;
    this.canvas.replaceWith(fresh);
    this.canvas = fresh;
  }

  private replace(kind: RendererKind): void {
    clearTimeout(this.giveUp);
    const before = this.drawing;
    this.renew();
    before.dispose();
    this.drawing = this.create(kind);
    this.onLost(false);
  }
}

function recall(): RendererKind {
  try {
    return localStorage.getItem(STORAGE_KEY) === 'webgl' ? 'webgl' : 'cpu';
  } catch {
    return 'cpu'; // storage can be forbidden
  }
}

function remember(kind: RendererKind): void {
  try {
    localStorage.setItem(STORAGE_KEY, kind);
  } catch {
    // the next page begins with the CPU again
  }
}

// On a canvas of its own: a canvas that once had WebGL can never have a 2D context.
function isFastGl(): boolean {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 256;
  const gl = canvas.getContext('webgl2', {failIfMajorPerformanceCaveat: true});
  if (!gl) return false;
  const info = gl.getExtension('WEBGL_debug_renderer_info');
  const driver: unknown = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  const isFast =
    typeof driver === 'string' && driver !== '' && /[a-z]{3}/i.test(driver)
      ? !isSoftwareGl(driver) && probe(gl)
      : probe(gl);
  gl.getExtension('WEBGL_lose_context')?.loseContext();
  return isFast;
}

/** Clears and reads back: a round trip that no driver can postpone. */
function probe(gl: WebGL2RenderingContext): boolean {
  const pixel = new Uint8Array(4);
  const once = (): number => {
    const start = performance.now();
    for (let i = 0; i < 16; i++) {
      gl.clearColor(i / 16, 0, 0, 1);
      gl.clear(gl.COLOR_BUFFER_BIT);
    }
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    return performance.now() - start;
  };
  once();
  return once() < PROBE_MS;
}
