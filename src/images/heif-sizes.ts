/**
 * @module Compares the sizes that an AVIF or HEIC declares with its tiles, and with the sizes that the sequence headers of HEVC and
 * AV1 state.
 */
import type { ByteReader } from './containers/file.ts';
import { declaredSize, type HeifMeta, readItem, readNumber } from './heif-items.ts';
import type { Size } from './image-info.ts';
import { AV1_HEADER_BYTES, av1Size, hevcSizes } from './sequence-headers.ts';

/** Side of the largest coding block in pixels. Encoders pad an image to whole blocks. */
const MAX_BLOCK = 64;

/**
 * Checks whether a coded image has another size than its property `ispe` declares, or whether the tiles of a grid do not
 * cover it. Decoders leave the rest of such a grid blank, and allocate more memory than the declared size requires. A missing
 * field is not a contradiction.
 */
export async function hasContradictorySizes(meta: HeifMeta, bytes: ByteReader): Promise<boolean> {
  const { items, references } = meta;
  const sizesOf = sizesByItem(meta);
  const read = (id: number, length: number) => readItem(meta, bytes, id, length);
  // The last item of an ID counts.
  for (const [id, type] of new Map(items.map((item) => [item.id, item.type]))) {
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
  readonly declared?: Size | undefined;
  /** Bounds of the sizes in each configuration of HEVC. */
  readonly hevc: readonly Size[];
}

const NO_SIZES: ItemSizes = { hevc: [] };

function sizesByItem({ properties, associations }: HeifMeta): (id: number) => ItemSizes {
  const stated = properties.map((property) => ({
    declared: declaredSize(property),
    hevc: property.name === 'hvcC' ? boundsOf(hevcSizes(property.body)) : [],
  }));
  const sizes = [...associations].map(([id, { indexes }]) => {
    const own = indexes.flatMap((index) => stated[index - 1] ?? []);
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
  const bound = (choose: typeof Math.min): Size => ({
    width: choose(...sizes.map(({ width }) => width)),
    height: choose(...sizes.map(({ height }) => height)),
  });
  return [bound(Math.min), bound(Math.max)];
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
