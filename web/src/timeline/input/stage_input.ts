// Pointer, wheel and keys of the stage and the minimap.

import {selection} from '../../model/view_state';
import type {Bookmark} from '../../api/bookmarks';
import {bookmarkAt} from '../data/bookmarks';
import type {MinimapGrip} from '../draw/minimap';
import {commandFor, isHeldCommand, isTextTarget, type Command} from './keymap';
import type {Navigator} from './navigate';
import type {Stage, StagePoint} from '../draw/stage';
import {clampWindow, nearestEdge, panWindow, zoomWindow, type Span} from '../data/view_math';

/** Movement that makes a press a drag. */
const DRAG_PX = 4;
/** Wheel distance that zooms by e. */
const WHEEL_ZOOM_PX = 400;
const LINE_PX = 33;
/** How near to an edge of a slice a dragged area takes that edge. */
const SNAP_PX = 6;
/** How far from a bookmark's flag the pointer still means it. */
const FLAG_PX = 8;
const MOVING_KEYS = /^(Arrow|Page|Home)/;

interface Drag {
  readonly pointerId: number;
  readonly mode: 'area' | 'pan' | 'zoom';
  readonly x: number;
  readonly y: number;
  readonly window: Span;
  readonly scrollTop: number;
  readonly point: StagePoint;
  /** Where an area begins. */
  readonly from: number;
  isMoving: boolean;
}

export class StageInput {
  private drag: Drag | undefined;
  private readonly touches = new Map<number, {x: number; y: number}>();
  private pinch: {distance: number; middle: number; window: Span} | undefined;
  private brush: {grip: MinimapGrip; offset: number; window: Span} | undefined;
  private readonly heldCodes = new Map<string, Command>();
  private readonly off = new AbortController();

  constructor(
    private readonly stage: Stage,
    private readonly navigator: Navigator,
    /** Whether the keys belong to the timeline now. */
    private readonly isActive: () => boolean,
  ) {
    const {overlay, minimap, scroller, axis} = stage.elements;
    const {signal} = this.off;
    overlay.addEventListener('pointerdown', e => this.down(e), {signal});
    overlay.addEventListener('pointermove', e => this.move(e), {signal});
    overlay.addEventListener('pointerup', e => this.up(e), {signal});
    overlay.addEventListener('pointercancel', e => this.cancel(e), {signal});
    overlay.addEventListener('pointerleave', () => this.leave(), {signal});
    overlay.addEventListener('dblclick', e => this.doubleClick(e), {signal});
    overlay.addEventListener('contextmenu', e => e.preventDefault(), {signal});
    // Not passive: Ctrl + wheel would zoom the page.
    scroller.addEventListener('wheel', e => this.wheel(e), {signal, passive: false});
    minimap.addEventListener('wheel', e => this.wheel(e), {signal, passive: false});
    minimap.addEventListener('pointerdown', e => this.brushDown(e), {signal});
    minimap.addEventListener('pointermove', e => this.brushMove(e), {signal});
    minimap.addEventListener('pointerup', () => (this.brush = undefined), {signal});
    minimap.addEventListener('pointercancel', () => (this.brush = undefined), {signal});
    axis.addEventListener('pointerdown', e => this.axisDown(e), {signal});
    axis.addEventListener('pointermove', e => this.axisMove(e), {signal});
    axis.addEventListener('pointerup', e => this.up(e), {signal});
    axis.addEventListener('pointercancel', e => this.cancel(e), {signal});
    axis.addEventListener('click', e => this.axisClick(e), {signal});
    axis.addEventListener('dblclick', e => this.axisDoubleClick(e), {signal});
    // Before the page's own keys: here 1 to 5 step through all the evidence of a finding.
    addEventListener('keydown', e => this.keyDown(e), {signal, capture: true});
    addEventListener('keyup', e => this.keyUp(e), {signal});
    addEventListener('blur', () => this.releaseKeys(), {signal});
  }

  close(): void {
    this.off.abort();
    this.releaseKeys();
  }

  private at(event: MouseEvent): {x: number; y: number} {
    const box = this.stage.elements.overlay.getBoundingClientRect();
    return {x: event.clientX - box.left, y: event.clientY - box.top};
  }

  private get window(): Span {
    return this.stage.model.window;
  }

  private down(event: PointerEvent): void {
    const {stage} = this;
    const {x, y} = this.at(event);
    stage.elements.overlay.setPointerCapture(event.pointerId);
    stage.elements.root.focus({preventScroll: true});
    stage.model.hover.value = undefined;
    const isTouch = event.pointerType === 'touch';
    if (isTouch) {
      this.touches.set(event.pointerId, {x, y});
      if (this.touches.size === 2) return this.pinchStart();
    }
    const isPan = event.button !== 0 || isTouch;
    if (event.button === 1) event.preventDefault(); // no autoscroll
    const from = this.edgeNear(x, y, event.altKey);
    this.begin(event, isPan ? 'pan' : event.shiftKey ? 'zoom' : 'area', x, y, from);
  }

  private begin(event: PointerEvent, mode: Drag['mode'], x: number, y: number, from: number): void {
    const {stage} = this;
    this.drag = {
      pointerId: event.pointerId,
      mode,
      x,
      y,
      window: this.window,
      scrollTop: stage.elements.scroller.scrollTop,
      point: stage.pointAt(x, y),
      from,
      isMoving: false,
    };
  }

  private move(event: PointerEvent): void {
    const {stage} = this;
    const {x, y} = this.at(event);
    if (this.touches.has(event.pointerId)) this.touches.set(event.pointerId, {x, y});
    if (this.pinch) return this.pinchMove();
    stage.pointerX = event.pointerType === 'touch' ? undefined : x;
    const {drag} = this;
    if (drag && drag.pointerId === event.pointerId) {
      if (!drag.isMoving && Math.hypot(x - drag.x, y - drag.y) >= DRAG_PX) drag.isMoving = true;
      if (drag.isMoving) this.dragTo(drag, x, y, event.altKey);
    } else {
      this.hover(x, y);
    }
    stage.invalidate();
  }

  private dragTo(drag: Drag, x: number, y: number, isFree: boolean): void {
    const {stage} = this;
    if (drag.mode === 'pan') {
      const share = (drag.x - x) / Math.max(1, stage.widthPx);
      stage.model.setWindow(panWindow(drag.window, share, stage.model.durationNs));
      stage.elements.scroller.scrollTop = drag.scrollTop + drag.y - y;
      return;
    }
    const {from} = drag;
    const isOnAxis = drag.y < 0;
    const to = this.edgeNear(Math.min(stage.widthPx, Math.max(0, x)), y, isFree || isOnAxis);
    stage.dragArea = {t0: Math.min(from, to), t1: Math.max(from, to)};
  }

  /** The time at a point, or the edge of a slice beside it: what is between two edges is measured
   *  to the nanosecond. */
  private edgeNear(x: number, y: number, isFree: boolean): number {
    const {stage} = this;
    const point = stage.pointAt(x, y);
    const hit = isFree ? undefined : stage.hitAt(point);
    if (!hit) return point.t;
    const {t0, t1} = this.window;
    const reach = (SNAP_PX * (t1 - t0)) / Math.max(1, stage.widthPx);
    return nearestEdge(point.t, [hit.start, hit.start + hit.dur], reach);
  }

  private up(event: PointerEvent): void {
    const {stage} = this;
    this.touches.delete(event.pointerId);
    if (this.touches.size < 2) this.pinch = undefined;
    const {drag} = this;
    if (!drag || drag.pointerId !== event.pointerId) return;
    this.drag = undefined;
    const area = stage.dragArea;
    stage.dragArea = undefined;
    const isOnAxis = event.currentTarget === stage.elements.axis;
    if (area && area.t1 > area.t0) {
      if (drag.mode === 'zoom') stage.model.setWindow(area);
      else this.navigator.selectArea(area.t0, area.t1);
    } else if (!drag.isMoving && !isOnAxis && event.button === 0)
      this.click(drag.point, event.shiftKey);
    else if (!drag.isMoving && event.button === 2 && stage.hitAt(drag.point)) {
      this.click(drag.point, false);
      stage.model.menu.value = {x: event.clientX, y: event.clientY};
    }
    stage.invalidate();
  }

  private cancel(event: PointerEvent): void {
    this.touches.delete(event.pointerId);
    this.pinch = undefined;
    this.drag = undefined;
    this.stage.dragArea = undefined;
    this.stage.invalidate();
  }

  private leave(): void {
    const {stage} = this;
    if (this.drag) return;
    stage.pointerX = undefined;
    stage.model.hover.value = undefined;
    stage.invalidate();
  }

  private click(point: StagePoint, isMeasure: boolean): void {
    const {stage, navigator} = this;
    const hit = stage.hitAt(point);
    if (!hit || point.row === undefined) {
      stage.model.show({selection: undefined});
      return;
    }
    if (isMeasure && navigator.selected) {
      return navigator.measureTo({t0: hit.start, t1: hit.start + hit.dur});
    }
    if (point.row.kind === 'gaps' && point.row.device !== undefined) {
      void this.selectGapAt(point.row.device, hit.slice, point.t);
      return;
    }
    navigator.selectSlice(hit.slice);
  }

  // The row shows pieces of gaps by cause; what a person means is the gap around the piece.
  private async selectGapAt(device: number, slice: number, t: number): Promise<void> {
    const {stage, navigator} = this;
    try {
      const gaps = await stage.model.gaps.load();
      const gap = gaps.find(
        g => g.device === device && g.start_ns <= t && t <= g.start_ns + g.dur_ns,
      );
      if (gap) {
        stage.model.show({
          selection: {
            kind: 'gap',
            device,
            t0: gap.start_ns,
            t1: (gap.start_ns + gap.dur_ns) as typeof gap.start_ns,
          },
        });
        return;
      }
    } catch {
      // The piece itself can still be shown.
    }
    navigator.selectSlice(slice);
  }

  private doubleClick(event: MouseEvent): void {
    const {stage, navigator} = this;
    const {x, y} = this.at(event);
    const point = stage.pointAt(x, y);
    const hit = stage.hitAt(point);
    if (hit) return navigator.zoomTo({t0: hit.start, t1: hit.start + Math.max(1, hit.dur)});
    const sel = selection.peek();
    if (sel && sel.kind !== 'slice' && point.t >= sel.t0 && point.t <= sel.t1) {
      navigator.zoomTo({t0: sel.t0, t1: sel.t1});
    }
  }

  private hover(x: number, y: number): void {
    const {stage} = this;
    const point = stage.pointAt(x, y);
    const hit = stage.hitAt(point);
    const value = stage.counterAt(point);
    const text = stage.usageAt(point);
    stage.model.hover.value =
      point.row && (hit || value !== undefined || text !== undefined)
        ? {row: point.row, hit, value, text, x, y, stageWidth: stage.widthPx}
        : undefined;
    stage.elements.overlay.style.cursor = hit ? 'pointer' : 'default';
  }

  private wheel(event: WheelEvent): void {
    const {stage} = this;
    const unit = event.deltaMode === 0 ? 1 : event.deltaMode === 1 ? LINE_PX : stage.heightPx;
    const dx = event.deltaX * unit;
    const dy = event.deltaY * unit;
    event.preventDefault();
    const {model} = stage;
    const {scroller} = stage.elements;
    // where all rows are in view there is nothing to scroll
    const isFree = !event.shiftKey && scroller.scrollHeight <= scroller.clientHeight;
    if (event.ctrlKey || event.metaKey || (isFree && Math.abs(dy) > Math.abs(dx))) {
      // A pinch arrives as Ctrl + wheel with small distances: it wants more zoom per pixel.
      const gain = Math.abs(dy) < 30 && event.ctrlKey && event.deltaMode === 0 ? 4 : 1;
      const box = stage.elements.overlay.getBoundingClientRect();
      const anchor = Math.min(1, Math.max(0, (event.clientX - box.left) / Math.max(1, box.width)));
      const factor = Math.exp((dy * gain) / WHEEL_ZOOM_PX);
      model.setWindow(zoomWindow(model.window, factor, anchor, model.durationNs));
    } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      const distance = event.shiftKey && dx === 0 ? dy : dx;
      const share = distance / Math.max(1, stage.widthPx);
      model.setWindow(panWindow(model.window, share, model.durationNs));
    } else {
      this.stage.elements.scroller.scrollTop += dy;
    }
    model.hover.value = undefined;
    stage.invalidate();
  }

  private pinchStart(): void {
    const [a, b] = [...this.touches.values()];
    if (!a || !b) return;
    this.drag = undefined;
    this.stage.dragArea = undefined;
    this.pinch = {
      distance: Math.max(20, Math.abs(a.x - b.x)),
      middle: (a.x + b.x) / 2,
      window: this.window,
    };
  }

  private pinchMove(): void {
    const [a, b] = [...this.touches.values()];
    const {pinch, stage} = this;
    if (!a || !b || !pinch) return;
    const {durationNs} = stage.model;
    const width = Math.max(1, stage.widthPx);
    const factor = pinch.distance / Math.max(20, Math.abs(a.x - b.x));
    const zoomed = zoomWindow(pinch.window, factor, pinch.middle / width, durationNs);
    const share = (pinch.middle - (a.x + b.x) / 2) / width;
    stage.model.setWindow(panWindow(zoomed, share, durationNs));
  }

  /** The bookmark under the pointer on the axis, whose columns are those of the stage. */
  private bookmarkAt(event: MouseEvent): Bookmark | undefined {
    const {stage} = this;
    const {t0, t1} = this.window;
    const nsPerPx = (t1 - t0) / Math.max(1, stage.widthPx);
    const {t} = stage.pointAt(this.at(event).x, 0);
    return bookmarkAt(stage.model.bookmarks.all.peek(), t, FLAG_PX * nsPerPx);
  }

  private axisDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.stage.elements.axis.setPointerCapture(event.pointerId);
    const {x} = this.at(event);
    this.begin(event, 'zoom', x, -1, this.stage.pointAt(x, -1).t);
  }

  private axisMove(event: PointerEvent): void {
    if (this.drag) return this.move(event);
    const {axis} = this.stage.elements;
    const mark = this.bookmarkAt(event);
    axis.style.cursor = mark ? 'pointer' : 'default';
    axis.title = mark ? mark.note || 'Bookmark' : 'Drag: zoom to it. Double click: a bookmark here';
  }

  private axisClick(event: MouseEvent): void {
    const mark = this.bookmarkAt(event);
    if (mark) this.navigator.goToBookmark(mark);
  }

  private axisDoubleClick(event: MouseEvent): void {
    const {stage} = this;
    if (this.bookmarkAt(event)) return;
    const {t} = stage.pointAt(this.at(event).x, 0);
    stage.model.bookmarks.begin({t0: t, t1: t});
  }

  private mapX(event: PointerEvent): number {
    return event.clientX - this.stage.elements.minimap.getBoundingClientRect().left;
  }

  private brushDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    const {stage} = this;
    const x = this.mapX(event);
    const t = stage.minimap.timeAt(x);
    stage.elements.minimap.setPointerCapture(event.pointerId);
    let {window} = this;
    const grip = stage.minimap.grip(x, window);
    if (grip === 'outside') {
      // A click beside the brush brings it there, and it can be dragged on.
      const half = (window.t1 - window.t0) / 2;
      window = clampWindow({t0: t - half, t1: t + half}, stage.model.durationNs);
      stage.model.setWindow(window);
    }
    const isWhole = window.t1 - window.t0 >= stage.model.durationNs;
    this.brush =
      isWhole && grip === 'inside'
        ? {grip: 'left', offset: t, window: {t0: t, t1: t}} // draws a window from here
        : {grip, offset: t, window};
  }

  private brushMove(event: PointerEvent): void {
    const {stage, brush} = this;
    const x = this.mapX(event);
    if (!brush) {
      const grip = stage.minimap.grip(x, this.window);
      const isEdge = grip === 'left' || grip === 'right';
      const cursor = isEdge ? 'ew-resize' : grip === 'inside' ? 'grab' : 'pointer';
      stage.elements.minimap.style.cursor = cursor;
      return;
    }
    const {durationNs} = stage.model;
    const t = Math.min(durationNs, Math.max(0, stage.minimap.timeAt(x)));
    const {t0, t1} = brush.window;
    if (brush.grip === 'left') {
      stage.model.setWindow({t0: Math.min(t, t1), t1: Math.max(t, t1)});
    } else if (brush.grip === 'right') {
      stage.model.setWindow({t0: Math.min(t, t0), t1: Math.max(t, t0)});
    } else {
      const delta = t - brush.offset;
      stage.model.setWindow(clampWindow({t0: t0 + delta, t1: t1 + delta}, durationNs));
    }
  }

  private keyDown(event: KeyboardEvent): void {
    if (!this.isActive() || document.querySelector('dialog[open], :popover-open')) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (isTextTarget(target)) return;
    const command = commandFor(event);
    if (command === undefined) return;
    // Enter on a button presses it; arrows and Backspace elsewhere belong to what has the focus.
    if (event.key === 'Enter' && target.closest('button, a, summary, [role=button]')) return;
    // Moving keys belong to what has the focus: a panel that scrolls, the browser's page.
    const isOurs = target === document.body || target === this.stage.elements.root;
    if (MOVING_KEYS.test(event.key) && !isOurs) return;
    event.preventDefault();
    event.stopPropagation();
    if (isHeldCommand(command) && !this.stage.theme.isReducedMotion) {
      if (event.repeat) return;
      this.heldCodes.set(event.code, command);
      this.applyHeld();
      // A tap moves by one step's worth even if it ends before the next frame.
      this.tap(command);
      return;
    }
    const run = (): void => this.navigator.run(command);
    if (command === 'menu') this.navigator.withSelected(span => this.stage.openMenu(span), run);
    else run();
  }

  private tap(command: Command): void {
    const {model} = this.stage;
    const {window} = model;
    const zoom = command === 'zoom-in' ? 0.92 : command === 'zoom-out' ? 1 / 0.92 : 1;
    const pan = command === 'pan-left' ? -0.02 : command === 'pan-right' ? 0.02 : 0;
    const {pointerX, widthPx} = this.stage;
    const anchor = pointerX === undefined ? 0.5 : pointerX / Math.max(1, widthPx);
    const next = zoom !== 1 ? zoomWindow(window, zoom, anchor, model.durationNs) : window;
    model.setWindow(pan !== 0 ? panWindow(next, pan, model.durationNs) : next);
  }

  private keyUp(event: KeyboardEvent): void {
    if (this.heldCodes.delete(event.code)) this.applyHeld();
    // macOS sends no keyup for letters released while Cmd is down.
    if (event.key === 'Meta') this.releaseKeys();
  }

  private releaseKeys(): void {
    this.heldCodes.clear();
    this.applyHeld();
  }

  private applyHeld(): void {
    const commands = new Set(this.heldCodes.values());
    const sign = (plus: Command, minus: Command): number =>
      Number(commands.has(plus)) - Number(commands.has(minus));
    this.stage.held = {
      zoom: sign('zoom-in', 'zoom-out'),
      pan: sign('pan-right', 'pan-left'),
    };
    this.stage.invalidate();
  }
}
