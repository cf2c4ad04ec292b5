/** @module Builds the environment of a tool. A tool inherits no variable except `PATH`. */

import type { Command } from './command.ts';

/** Options that determine the environment of a tool. */
export interface EnvironmentOptions {
  /** `PATH` of the service. */
  readonly searchPath: string;
  /** Folder that contains `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  /** Folder with a copy of the policy that permits more. Default: `policyFolder`. */
  readonly grantsFolder?: string;
  readonly limits?: MagickLimits;
  /** Variables that are added, or that replace the defaults. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Resource limits of ImageMagick. They can only lower the limits of the policy. */
export interface MagickLimits {
  /** Pixels of one image. */
  readonly pixels: number;
  readonly memoryBytes: number;
  /** Images in one file. */
  readonly frames: number;
}

const MIB = 1024 ** 2;

/**
 * Tunes how glibc allocates memory for images.
 *
 * - Pages of 2 MiB, where the kernel offers them on request (`madvise`). Each small page costs 0.5 µs or more when it
 * is first touched: converting 3 megapixels from JPEG to JPEG takes 61 ms instead of 71 ms.
 * - Up to 64 MiB of freed memory stay in the process, for its next allocations.
 */
const MEMORY = {
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
  MALLOC_MMAP_THRESHOLD_: String(32 * MIB),
  MALLOC_TRIM_THRESHOLD_: String(64 * MIB),
};

/**
 * Returns the environment of a command.
 *
 * ImageMagick takes rights from the policy that it reads last, and limits from the one that it reads first. So
 * `XDG_CONFIG_HOME` and `MAGICK_CONFIGURE_PATH` both point to the policy folder. `HOME` must not be a folder that a job
 * can write to.
 */
export function environment(
  {
    searchPath,
    policyFolder,
    grantsFolder = policyFolder,
    limits,
    environment: overrides,
  }: EnvironmentOptions,
  { cwd, timeoutMs }: Command,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8', // Pango chooses fonts by the locale
    XDG_CONFIG_HOME: grantsFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    // One second later than the time limit of the service, which reports a timeout as such.
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1),
    MAGICK_TEMPORARY_PATH: cwd,
    TMPDIR: cwd,
    XDG_CACHE_HOME: cwd,
    ...MEMORY,
    ...(limits && {
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits.frames)),
    }),
    ...overrides,
  };
}

/**
 * Returns the limit of ImageMagick's image list. While ImageMagick composes frames, the list also holds copies of them.
 */
export function listLength(frames: number): number {
  return 3 * frames + 12;
}
