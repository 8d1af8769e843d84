// Draws on a GPU: one instanced quad per slice or cell, one buffer per (tile), uploaded once, drawn
// with two uniforms. Positions are relative to their tile (single precision is exact enough for
// 512 cells); the scale and the offset of each tile are computed in double precision on the CPU.
//
// Quads are added up in a texture: red, green and blue weighted by the covered share of the pixel,
// and the share itself. Slices of a lane do not overlap, so the sum is the same exact box filter
// that strip_raster.ts computes; a second pass turns it into colors with the same rule.

import {holds, stampColors, type ColorStamp} from './color_stamp';
import {ALPHA_MIN} from './strip_raster';
import type {Renderer, Scene, SceneRow} from './scene';
import type {Tile} from './tile_decode';
import {cellNs, levelFor, tileNs} from './tile_plan';
import {walkTiles, type TileVisitor} from './tile_walk';

/** start, end (cells of the tile), lane, color. */
const INSTANCE_BYTES = 16;
const BUFFERS_BYTES_MAX = 96 * 1024 * 1024;

// place: px of the tile's start, px a cell. clipPx: what this draw may touch. row: top px, lane height
// px, lanes, the first lane; -1 when merged. exact: 1 of natives, 0 of cells.
const RECT_VERTEX = `#version 300 es
layout(location = 0) in vec2 corner;
layout(location = 1) in vec2 span;
layout(location = 2) in float lane;
layout(location = 3) in vec4 color;
uniform vec2 place;
uniform vec2 clipPx;
uniform vec4 row;
uniform vec2 viewport;
uniform float exact;
out vec2 edges;
out vec4 tint;
void main() {
  float x0 = place.x + span.x * place.y;
  float x1 = place.x + span.y * place.y;
  float width = x1 - x0;
  if (exact > 0.5 && width >= 2.0) {
    x0 = floor(x0 + 0.5);
    x1 = floor(x1 + 0.5) - (width >= 3.0 ? 1.0 : 0.0);
    x0 = max(x0, floor(clipPx.x));
    x1 = min(x1, ceil(clipPx.y));
  } else {
    x0 = max(x0, clipPx.x);
    x1 = min(x1, clipPx.y);
  }
  float shown = row.w < -0.5 ? 0.0 : lane - row.w;
  bool hidden = x1 < x0 || shown < -0.5 || shown >= row.z;
  edges = vec2(x0, x1);
  tint = color;
  float left = floor(x0);
  float right = max(left + 1.0, ceil(x1));
  float x = mix(left, right, corner.x);
  float y = row.x + (shown + corner.y) * row.y - corner.y;
  vec2 ndc = vec2(x, viewport.y - floor(y + 0.5)) / viewport * 2.0 - 1.0;
  gl_Position = hidden ? vec4(2.0, 2.0, 0.0, 1.0) : vec4(ndc, 0.0, 1.0);
}`;

// A lone slice far below a pixel leaves the smallest trace that eight bits can hold.
const RECT_FRAGMENT = `#version 300 es
precision highp float;
in vec2 edges;
in vec4 tint;
out vec4 sum;
void main() {
  float x = floor(gl_FragCoord.x);
  float cover = min(x + 1.0, edges.y) - max(x, edges.x);
  cover = max(cover * tint.a, 1.0 / 255.0);
  sum = vec4(tint.rgb * cover, cover);
}`;

const FULL_VERTEX = `#version 300 es
layout(location = 0) in vec2 corner;
void main() { gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0); }`;

const RESOLVE_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D sums;
uniform float alphaMin;
out vec4 color;
void main() {
  vec4 sum = texelFetch(sums, ivec2(gl_FragCoord.xy), 0);
  if (sum.a <= 0.0) { color = vec4(0.0); return; }
  float alpha = min(1.0, alphaMin + sum.a * (1.0 - alphaMin));
  color = vec4(min(sum.rgb / sum.a, 1.0) * alpha, alpha);
}`;

interface TileBuffers {
  readonly natives: WebGLVertexArrayObject | undefined;
  readonly cells: WebGLVertexArrayObject | undefined;
  readonly buffers: readonly WebGLBuffer[];
  readonly bytes: number;
  readonly colors: ColorStamp;
  usedAt: number;
}

export class WebGlRenderer implements Renderer {
  readonly name = 'webgl';
  private rects: WebGLProgram | undefined;
  private resolver: WebGLProgram | undefined;
  private quad: WebGLBuffer | undefined;
  private fullVao: WebGLVertexArrayObject | undefined;
  private sums: WebGLTexture | undefined;
  private target: WebGLFramebuffer | undefined;
  private targetSize = '';
  private sumFormat: number = WebGL2RenderingContext.RGBA8;
  private readonly tiles = new Map<Tile, TileBuffers>();
  private bytes = 0;
  private frame = 0;
  private uniforms: Record<string, WebGLUniformLocation | null> = {};

  /** @return undefined when this browser gives no WebGL2 or the programs do not build */
  static create(
    canvas: HTMLCanvasElement,
    onLost: (isLost: boolean) => void,
  ): WebGlRenderer | undefined {
    const gl = canvas.getContext('webgl2', {
      alpha: true,
      antialias: false,
      depth: false,
      premultipliedAlpha: true,
    });
    if (!gl) return undefined;
    const renderer = new WebGlRenderer(canvas, gl);
    if (!renderer.build()) return undefined;
    canvas.addEventListener('webglcontextlost', event => {
      event.preventDefault(); // without this it is never restored
      onLost(true);
    });
    canvas.addEventListener('webglcontextrestored', () => {
      // what the lost context had made is nothing to the new one
      renderer.tiles.clear();
      renderer.bytes = 0;
      renderer.targetSize = '';
      renderer.target = undefined;
      renderer.sums = undefined;
      if (renderer.build()) onLost(false);
    });
    return renderer;
  }

  private constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly gl: WebGL2RenderingContext,
  ) {}

  private build(): boolean {
    const {gl} = this;
    // Where a rounded edge meets a thin neighbor a pixel adds up to more than 1. Half floats hold
    // that; eight bits are clamped, and such pixels come out a little lighter.
    const hasHalfFloats =
      gl.getExtension('EXT_color_buffer_float') !== null ||
      gl.getExtension('EXT_color_buffer_half_float') !== null;
    this.sumFormat = hasHalfFloats ? gl.RGBA16F : gl.RGBA8;
    this.rects = this.program(RECT_VERTEX, RECT_FRAGMENT);
    this.resolver = this.program(FULL_VERTEX, RESOLVE_FRAGMENT);
    if (!this.rects || !this.resolver) return false;
    for (const name of ['place', 'clipPx', 'row', 'viewport', 'exact']) {
      this.uniforms[name] = gl.getUniformLocation(this.rects, name);
    }
    this.uniforms['alphaMin'] = gl.getUniformLocation(this.resolver, 'alphaMin');
    this.quad = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, this.quad);
    gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
    this.fullVao = gl.createVertexArray();
    gl.bindVertexArray(this.fullVao);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(null);
    return true;
  }

  private program(vertex: string, fragment: string): WebGLProgram | undefined {
    const {gl} = this;
    const program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, vertex],
      [gl.FRAGMENT_SHADER, fragment],
    ] as const) {
      const shader = gl.createShader(type);
      if (!shader) return undefined;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    return gl.getProgramParameter(program, gl.LINK_STATUS) === true ? program : undefined;
  }

  draw(scene: Scene): boolean {
    const {gl, canvas} = this;
    if (gl.isContextLost() || !this.rects || !this.resolver) return true;
    this.frame++;
    const dpr = scene.devicePixelRatio;
    const width = Math.max(1, Math.round(scene.widthPx * dpr));
    const height = Math.max(1, Math.round(scene.heightPx * dpr));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    this.prepareTarget(width, height);

    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target ?? null);
    gl.viewport(0, 0, width, height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.rects);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE);
    gl.uniform2f(this.uniforms['viewport'] ?? null, width, height);
    const nsPerPx = (scene.t1 - scene.t0) / width;
    /** Rows that scroll end here, from the bottom. */
    const clip = height - Math.round(scene.fixedPx * dpr);
    gl.enable(gl.SCISSOR_TEST);
    for (const row of scene.rows) {
      gl.scissor(0, 0, width, row.isFixed ? height : clip);
      this.row(row, scene, nsPerPx, width);
    }
    gl.disable(gl.SCISSOR_TEST);

    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.disable(gl.BLEND);
    gl.useProgram(this.resolver);
    gl.bindTexture(gl.TEXTURE_2D, this.sums ?? null);
    gl.bindVertexArray(this.fullVao ?? null);
    const resolve = (alphaMin: number): void => {
      gl.uniform1f(this.uniforms['alphaMin'] ?? null, alphaMin);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    };
    const usual = scene.rows[0]?.alphaMin ?? ALPHA_MIN;
    resolve(usual);
    gl.enable(gl.SCISSOR_TEST);
    for (const row of scene.rows) {
      if (row.alphaMin === usual) continue;
      const rowHeight = Math.ceil(row.laneHeight * row.lanes * dpr);
      const bottom = height - Math.round(row.top * dpr) - rowHeight;
      const room = (row.isFixed ? height : clip) - bottom;
      gl.scissor(0, bottom, width, Math.max(0, Math.min(rowHeight, room)));
      resolve(row.alphaMin);
    }
    gl.disable(gl.SCISSOR_TEST);
    gl.bindVertexArray(null);
    this.evict();
    return true;
  }

  dispose(): void {
    for (const [tile] of this.tiles) this.drop(tile);
    const {gl} = this;
    gl.deleteTexture(this.sums ?? null);
    gl.deleteFramebuffer(this.target ?? null);
    gl.getExtension('WEBGL_lose_context')?.loseContext();
  }

  private row(row: SceneRow, scene: Scene, nsPerPx: number, width: number): void {
    const {gl, uniforms} = this;
    const dpr = scene.devicePixelRatio;
    // The same whole-pixel origin as the CPU renderer: both draw the same picture.
    const originPx = Math.round(scene.t0 / nsPerPx);
    gl.uniform4f(
      uniforms['row'] ?? null,
      Math.round(row.top * dpr),
      row.laneHeight * dpr,
      row.isMerged ? 1 : row.lanes,
      row.isMerged ? -1 : row.laneFirst,
    );
    const part = (tile: Tile, t0: number, t1: number, isExact: boolean): void => {
      const buffers = this.upload(tile, scene);
      const vao = isExact ? buffers.natives : buffers.cells;
      if (!vao) return;
      const start = (tile.index * tileNs(tile.level)) / nsPerPx - originPx;
      gl.uniform2f(uniforms['place'] ?? null, start, cellNs(tile.level) / nsPerPx);
      gl.uniform2f(
        uniforms['clipPx'] ?? null,
        Math.max(-2, t0 / nsPerPx - originPx),
        Math.min(width + 2, t1 / nsPerPx - originPx),
      );
      gl.uniform1f(uniforms['exact'] ?? null, isExact ? 1 : 0);
      gl.bindVertexArray(vao);
      const count = isExact ? tile.nativeCount : tile.cellCount;
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
    };
    const visitor: TileVisitor = {
      natives: (tile, t0, t1) => part(tile, t0, t1, true),
      cells: (tile, t0, t1) => part(tile, t0, t1, false),
    };
    const {source, levelMax} = scene;
    const level = levelFor(nsPerPx, levelMax);
    walkTiles(source, row.track, level, levelMax, scene.t0, scene.t1, visitor);
  }

  private prepareTarget(width: number, height: number): void {
    const size = `${width}x${height}`;
    if (size === this.targetSize) return;
    this.targetSize = size;
    const {gl} = this;
    gl.deleteTexture(this.sums ?? null);
    this.sums = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.sums);
    gl.texStorage2D(gl.TEXTURE_2D, 1, this.sumFormat, width, height);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    this.target ??= gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.target);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, this.sums, 0);
  }

  private upload(tile: Tile, scene: Scene): TileBuffers {
    let buffers = this.tiles.get(tile);
    if (buffers && !holds(buffers.colors, scene.colors)) {
      this.drop(tile);
      buffers = undefined;
    }
    if (!buffers) {
      const unknownBefore = scene.colors.unknown;
      const natives = this.nativeBuffer(tile, scene);
      const cells = this.cellBuffer(tile, scene);
      buffers = {
        natives: natives?.vao,
        cells: cells?.vao,
        buffers: [natives?.buffer, cells?.buffer].filter(b => b !== undefined),
        bytes: (tile.nativeCount + tile.cellCount) * INSTANCE_BYTES,
        colors: stampColors(scene.colors, unknownBefore),
        usedAt: this.frame,
      };
      this.tiles.set(tile, buffers);
      this.bytes += buffers.bytes;
    }
    buffers.usedAt = this.frame;
    return buffers;
  }

  private nativeBuffer(tile: Tile, scene: Scene): ReturnType<WebGlRenderer['instances']> {
    const origin = tile.index * tileNs(tile.level);
    const inverse = 1 / cellNs(tile.level);
    return this.instances(tile.nativeCount, (floats, words, i, at) => {
      const start = (tile.nativeStart[i] as number) - origin;
      floats[at] = start * inverse;
      floats[at + 1] = (start + (tile.nativeDur[i] as number)) * inverse;
      floats[at + 2] = tile.nativeLane[i] as number;
      const color = scene.colors.color(tile.nativeKind[i] as number, tile.nativeName[i] as number);
      words[at + 3] = color;
    });
  }

  private cellBuffer(tile: Tile, scene: Scene): ReturnType<WebGlRenderer['instances']> {
    const inverse = 1 / cellNs(tile.level);
    return this.instances(tile.cellCount, (floats, words, i, at) => {
      const index = tile.cellIndex[i] as number;
      floats[at] = index;
      floats[at + 1] = index + 1;
      floats[at + 2] = tile.cellLane[i] as number;
      const color = scene.colors.color(tile.cellKind[i] as number, tile.cellName[i] as number);
      const share = Math.round(255 * Math.min(1, (tile.cellBusy[i] as number) * inverse));
      words[at + 3] = ((color & 0xffffff) | (share << 24)) >>> 0;
    });
  }

  private instances(
    count: number,
    fill: (floats: Float32Array, words: Uint32Array, i: number, at: number) => void,
  ): {vao: WebGLVertexArrayObject; buffer: WebGLBuffer} | undefined {
    if (count === 0) return undefined;
    const floats = new Float32Array(count * 4);
    const words = new Uint32Array(floats.buffer);
    for (let i = 0; i < count; i++) fill(floats, words, i, i * 4);
    const {gl} = this;
    const vao = gl.createVertexArray();
    const buffer = gl.createBuffer();
    gl.bindVertexArray(vao);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.quad ?? null);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, floats, gl.STATIC_DRAW);
    for (const [location, size, type, isNormalized, offset] of [
      [1, 2, gl.FLOAT, false, 0],
      [2, 1, gl.FLOAT, false, 8],
      [3, 4, gl.UNSIGNED_BYTE, true, 12],
    ] as const) {
      gl.enableVertexAttribArray(location);
      gl.vertexAttribPointer(location, size, type, isNormalized, INSTANCE_BYTES, offset);
      gl.vertexAttribDivisor(location, 1);
    }
    gl.bindVertexArray(null);
    return {vao, buffer};
  }

  private drop(tile: Tile): void {
    const buffers = this.tiles.get(tile);
    if (!buffers) return;
    const {gl} = this;
    for (const vao of [buffers.natives, buffers.cells]) if (vao) gl.deleteVertexArray(vao);
    for (const buffer of buffers.buffers) gl.deleteBuffer(buffer);
    this.bytes -= buffers.bytes;
    this.tiles.delete(tile);
  }

  private evict(): void {
    if (this.bytes <= BUFFERS_BYTES_MAX) return;
    const oldest = [...this.tiles.entries()].sort((a, b) => a[1].usedAt - b[1].usedAt);
    for (const [tile, {usedAt}] of oldest) {
      if (this.bytes <= BUFFERS_BYTES_MAX * 0.75 || usedAt === this.frame) break;
      this.drop(tile);
    }
  }
}
