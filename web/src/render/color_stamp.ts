// Which colors something was drawn with, and whether they still hold. Pure: runs in node.

import type {SceneColors} from './scene';

export interface ColorStamp {
  readonly version: number;
  readonly namesVersion: number;
  /** Some of its names were not here. */
  readonly hasUnknown: boolean;
}

/** Of what was drawn since `unknownBefore` was read. */
export function stampColors(colors: SceneColors, unknownBefore: number): ColorStamp {
  const {version, namesVersion, unknown} = colors;
  return {version, namesVersion, hasUnknown: unknown !== unknownBefore};
}

export const holds = (stamp: ColorStamp | undefined, colors: SceneColors): boolean =>
  stamp?.version === colors.version &&
  !(stamp.hasUnknown && stamp.namesVersion !== colors.namesVersion);
