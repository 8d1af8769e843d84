// What a device did in each part of a window, as layers of an area: computing by kind, then
// communication, then copies. Pure: runs in node.

import type {Strip} from '../../api/types';
import {formatPct} from '../../base/format';

interface Layer {
  readonly word: string;
  /** On a light and on a dark ground: 3:1 or more to it. */
  readonly light: string;
  readonly dark: string;
}

const KINDS: Readonly<Record<string, Layer>> = {
  matrix: {word: 'GEMM', light: '#3b6ea5', dark: '#6f9fd8'},
  convolution: {word: 'convolutions', light: '#2f7f86', dark: '#5fb0b8'},
  attention: {word: 'attention', light: '#7a5aa6', dark: '#a98cd6'},
  memory: {word: 'elementwise and memory', light: '#757b84', dark: '#8b929c'},
  other: {word: 'other kernels', light: '#8a7d6b', dark: '#a89a86'},
};
const BESIDE: Readonly<Record<string, Layer>> = {
  exposed_comm: {word: 'communication alone', light: '#a8632a', dark: '#d79255'},
  exposed_copy: {word: 'copies alone', light: '#4f8a4a', dark: '#7dbb77'},
};
const FORCED = ['#ffffff', '#c0c0c0', '#a0a0a0', '#e0e0e0', '#b0b0b0', '#ffff00', '#00ffff'];

export interface UsageLayer {
  readonly word: string;
  readonly color: string;
  /** Of each part, thousandths. */
  readonly parts: readonly number[];
}

/** Layers from the bottom up; only those that there are. */
export function usageLayers(
  strip: Pick<Strip, 'work' | 'kinds'>,
  theme: 'light' | 'dark' | 'forced',
): readonly UsageLayer[] {
  const all = [
    ...Object.entries(KINDS).map(([key, layer]) => ({layer, parts: strip.kinds?.[key]?.parts})),
    ...Object.entries(BESIDE).map(([key, layer]) => ({layer, parts: strip.work?.[key]?.parts})),
  ];
  return all.flatMap(({layer, parts}, i) =>
    parts
      ? [
          {
            word: layer.word,
            parts,
            color: theme === 'forced' ? (FORCED[i] ?? '#fff') : layer[theme],
          },
        ]
      : [],
  );
}

/** "GEMM 62 %, copies alone 3 %" of the part that `t` lies in. */
export function describeUsage(strip: Strip, t: number): string | undefined {
  const part = Math.floor(((t - strip.t0_ns) / (strip.t1_ns - strip.t0_ns)) * strip.points);
  if (part < 0 || part >= strip.points) return undefined;
  const said = usageLayers(strip, 'light')
    .filter(layer => (layer.parts[part] ?? 0) >= 5)
    .map(layer => `${layer.word} ${formatPct((layer.parts[part] ?? 0) / 10)}`);
  return said.join(', ') || 'nothing ran';
}
