/** @module Compares the sizes that an AVIF or HEIC declares with its tiles and with the configuration of its codec. */

import { AV1_HEADER_BYTES, av1Size, hevcSizes } from './coded-size.ts';
import type { WindowReader } from './containers/window-reader.ts';
import {
  type Box,
  findBox,
  parseAssociations,
  parseBoxes,
  parseItems,
  parseLocations,
  parseProperties,
  parseReferences,
  readNumber,
} from './heif-items.ts';
import type { Size } from './image-info.ts';

/** Side of the largest coding block in pixels. Encoders pad an image to whole blocks. */
const MAX_BLOCK = 64;

/**
 * Checks whether a coded image has another size than its property `ispe` declares, or whether the tiles of a grid do not
 * cover it. Decoders leave the rest of such a grid blank, and allocate more memory than the declared size requires. A missing
 * field is not a contradiction.
 *
 * @param meta the content of the box `meta`, which must stay valid while the file is read
 */
export async function hasContradictorySizes(meta: Buffer, bytes: WindowReader): Promise<boolean> {
  const boxes = parseBoxes(meta);
  const items = new Map(parseItems(findBox(boxes, 'iinf')).map(({ id, type }) => [id, type]));
  const idat = findBox(boxes, 'idat') ?? Buffer.alloc(0);
  const locations = parseLocations(findBox(boxes, 'iloc'));
  const references = parseReferences(findBox(boxes, 'iref'));
  const sizesOf = sizesByItem(findBox(boxes, 'iprp'));
  const read = async (id: number, length: number): Promise<Buffer> => {
    const { inBox, offset = Number.NaN } = locations.get(id) ?? {};
    return inBox ? idat.subarray(offset, offset + length) : bytes.read(offset, length);
  };

  for (const [id, type] of items) {
    const { declared, hevc } = sizesOf(id);
    const av1 = type === 'av01' ? av1Size(await read(id, AV1_HEADER_BYTES)) : undefined;
    const coded = [...hevc, ...(av1 ? [av1] : [])];
    if (declared && !coded.every((size) => isPadded(size, declared))) return true;
    if (type !== 'grid') continue;
    const grid = parseGrid(await read(id, GRID_BYTES));
    const tiles = references.find((one) => one.type === 'dimg' && one.from === id);
    const tileSizes = tiles?.to.flatMap((tile) => sizesOf(tile).declared ?? []) ?? [];
    if (grid && !isCovered(grid, tiles?.count, tileSizes)) return true;
  }
  return false;
}

interface ItemSizes {
  /** Size of the property `ispe`. */
  readonly declared?: Size | undefined;
  /** Bounds of the sizes in each configuration of HEVC. */
  readonly hevc: readonly Size[];
}

const NO_SIZES: ItemSizes = { hevc: [] };

function sizesByItem(iprp: Buffer | undefined): (id: number) => ItemSizes {
  const properties = parseProperties(iprp).map((property) => ({
    declared: declaredSize(property),
    hevc: property.name === 'hvcC' ? boundsOf(hevcSizes(property.body)) : [],
  }));
  const sizes = [...parseAssociations(iprp)].map(([id, { indexes }]) => {
    const own = indexes.flatMap((index) => properties[index - 1] ?? []);
    const { declared } = own.find((property) => property.declared) ?? {};
    return [id, { declared, hevc: own.flatMap(({ hevc }) => hevc) }] as const;
  });
  const byItem = new Map<number, ItemSizes>(sizes);
  return (id) => byItem.get(id) ?? NO_SIZES;
}

/**
 * Returns the smallest and the largest sides, which are padded correctly only if all sizes are. Many items can refer to a
 * configuration with many sizes.
 */
function boundsOf(sizes: readonly Size[]): readonly Size[] {
  if (sizes.length < 2) return sizes;
  const sidesOf = (side: keyof Size): number[] => sizes.map((size) => size[side]);
  const bound = (choose: typeof Math.min): Size => ({
    width: choose(...sidesOf('width')),
    height: choose(...sidesOf('height')),
  });
  return [bound(Math.min), bound(Math.max)];
}

function declaredSize({ name, body }: Box): Size | undefined {
  const [width, height] = [readNumber(body, 4, 4), readNumber(body, 8, 4)];
  return name === 'ispe' && width && height ? { width, height } : undefined;
}

/** Checks whether a coded size is the declared one, padded to whole blocks. */
function isPadded(coded: Size, declared: Size): boolean {
  const added = [coded.width - declared.width, coded.height - declared.height];
  return added.every((pixels) => pixels >= 0 && pixels < MAX_BLOCK);
}

/** Checks whether there is a tile for every place, and whether the tiles together are as large as the grid. */
function isCovered(
  { rows, columns, width, height }: Grid,
  count: number | undefined,
  tiles: readonly Size[],
): boolean {
  if (count !== rows * columns) return false;
  return tiles.every((tile) => columns * tile.width >= width && rows * tile.height >= height);
}

/** Length of the data of a grid with 32-bit sizes. */
const GRID_BYTES = 12;

interface Grid extends Size {
  readonly rows: number;
  readonly columns: number;
}

/** Parses the data of a grid (ISO/IEC 23008-12, section 6.6.2.3). */
function parseGrid(data: Buffer): Grid | undefined {
  const [, flags = 0, rows = 0, columns = 0] = data;
  const length = (flags & 1) === 1 ? 4 : 2;
  const [width, height] = [readNumber(data, 4, length), readNumber(data, 4 + length, length)];
  if (width === undefined || height === undefined) return undefined;
  return { rows: rows + 1, columns: columns + 1, width, height };
}
