// Which of the two renderers: WebGL2 on a real GPU, the CPU for software GL (virtual machines,
// remote desktops, CI), where instancing is 20 times slower than drawing without it.

import {CpuRenderer} from './cpu_renderer';
import type {Renderer} from './scene';
import {WebGlRenderer} from './webgl_renderer';

export type RendererChoice = 'auto' | 'webgl' | 'cpu';

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

/**
 * Never fails when WebGL is missing: the CPU draws then.
 * @param onLost told when the browser took the graphics context away, and when there is a picture
 *   to draw again, for which the scene has to be drawn anew
 */
export function createRenderer(
  canvas: HTMLCanvasElement,
  choice: RendererChoice,
  onLost: (isLost: boolean) => void,
): Renderer {
  if (choice === 'cpu' || (choice === 'auto' && !isFastGl())) return new CpuRenderer(canvas);
  let giveUp: ReturnType<typeof setTimeout> | undefined;
  let isWebGl = true; // until it is disposed of, which gives the context back, too
  let drawing: Renderer | undefined = WebGlRenderer.create(canvas, isLost => {
    if (!isWebGl) return;
    clearTimeout(giveUp);
    if (isLost) giveUp = setTimeout(drawWithoutGl, RESTORED_WITHIN_MS);
    onLost(isLost);
  });
  if (!drawing) return new CpuRenderer(canvas);
  /** In a canvas of its own: one that had WebGL can never have a 2D context. */
  const drawWithoutGl = (): void => {
    isWebGl = false;
    const fresh = canvas.cloneNode() as HTMLCanvasElement;
    canvas.replaceWith(fresh);
    drawing?.dispose();
    drawing = new CpuRenderer(fresh);
    onLost(false);
  };
  return {
    get name() {
      return drawing?.name ?? 'cpu';
    },
    draw: scene => drawing?.draw(scene) ?? true,
    dispose() {
      isWebGl = false;
      clearTimeout(giveUp);
      drawing?.dispose();
    },
  };
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
