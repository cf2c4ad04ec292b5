/** @module Reads the rotation and mirroring of an image in AVIF or HEIC (ISO/IEC 23008-12, sections 6.5.10 and 6.5.12). */

import { type Box, createPropertyFinder, findBox, parseReferences } from './heif-items.ts';
import type { ImageFacts, Orientation } from './image-info.ts';

/** Names of the properties that rotate and mirror. */
export const ROTATIONS = ['irot', 'imir'];

/** Types of auxiliary images that are alpha (MIAF, ISO/IEC 23000-22, section 7.3.5; HEVC in ISO/IEC 23008-12, annex B). */
const ALPHA_TYPES = ['urn:mpeg:mpegB:cicp:systems:auxiliary:alpha', 'urn:mpeg:hevc:2015:auxid:1'];

/**
 * EXIF orientations by the number of quarter turns anticlockwise. The image is then not mirrored, or its top and bottom are
 * exchanged (axis 0), or its left and right (axis 1).
 */
const ORIENTATIONS: readonly (readonly [Orientation, Orientation, Orientation])[] = [
  [1, 4, 2],
  [8, 5, 7],
  [3, 2, 4],
  [6, 7, 5],
];

/**
 * Returns the rotation of the primary image if its alpha has another one. libheif rotates each by its own properties, and
 * libavif writes none for the alpha, to which those of the primary image apply.
 *
 * @param boxes content of the box `meta`
 */
export function plannedRotation(
  boxes: readonly Box[],
  primary: number | undefined,
): Pick<ImageFacts<'avif'>, 'orientation' | 'plannedRotation'> {
  const propertiesOf = createPropertyFinder(findBox(boxes, 'iprp'));
  const orientation = orientationIn(propertiesOf(primary) ?? []);
  if (primary === undefined || orientation === undefined || orientation === 1) return {};
  const differs = parseReferences(findBox(boxes, 'iref'))
    .filter(({ type, to }) => type === 'auxl' && to.includes(primary))
    .map(({ from }) => propertiesOf(from) ?? [])
    .some((own) => own.some(isAlpha) && orientationIn(own) !== orientation);
  return differs ? { orientation, plannedRotation: true } : {};
}

/** Returns whether a property marks an item as alpha. */
export function isAlpha({ name, body }: Box): boolean {
  return name === 'auxC' && ALPHA_TYPES.some((type) => body.toString('latin1', 4).startsWith(type));
}

/** Returns the orientation that properties have in their order; undefined if there are more than files have. */
function orientationIn(properties: readonly Box[]): Orientation | undefined {
  const [first, second, ...more] = properties.filter(({ name }) => ROTATIONS.includes(name));
  if (more.length > 0 || (second && second.name === first?.name)) return undefined;
  const value = (wanted: string): number | undefined =>
    [first, second].find((property) => property?.name === wanted)?.body[0];
  const turns = (value('irot') ?? 0) & 3;
  const axis = value('imir');
  // An image that is mirrored first is rotated in the other direction.
  const turnsBefore = first?.name === 'imir' ? (4 - turns) & 3 : turns;
  return ORIENTATIONS[turnsBefore]?.[axis === undefined ? 0 : 1 + (axis & 1)];
}
