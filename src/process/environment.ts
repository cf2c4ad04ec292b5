import type { Command } from './command.ts';

/** The whole environment of a tool: nothing is inherited but where programs are looked for. */

export interface EnvironmentOptions {
  /** `PATH`, as it was inherited. */
  readonly searchPath: string;
  /** A folder that holds `ImageMagick/policy.xml`. */
  readonly policyFolder: string;
  /** A folder with a policy of the same form that grants more rights; by default `policyFolder`. */
  readonly grantsFolder?: string;
  readonly limits?: MagickLimits;
  /** What differs. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** What ImageMagick may use at most, below what the policy allows. */
export interface MagickLimits {
  /** Of one picture. */
  readonly pixels: number;
  readonly memoryBytes: number;
  /** Pictures in one file. */
  readonly frames: number;
}

const MIB = 1024 ** 2;

/**
 * How glibc gets memory for pictures: by pages of 2 MiB, where the kernel gives those to who asks for them, since every
 * small one that is touched costs half a microsecond or more (of a process for 3 megapixels, JPEG to JPEG, 71 ms became
 * 61); and up to 64 MiB that were freed are kept, for whatever comes next in the same process.
 */
const MEMORY = {
  GLIBC_TUNABLES: 'glibc.malloc.hugetlb=1',
  MALLOC_MMAP_THRESHOLD_: String(32 * MIB),
  MALLOC_TRIM_THRESHOLD_: String(64 * MIB),
};

/**
 * Rights come from the policy read last, limits from the one read first: with both
 * variables at our folder both are ours. HOME must not be a place a job can write.
 */
export function environment(
  { searchPath, policyFolder, grantsFolder = policyFolder, limits, environment: own }: EnvironmentOptions,
  { cwd, timeoutMs }: Command,
): Record<string, string> {
  return {
    PATH: searchPath,
    HOME: '/nonexistent',
    LC_ALL: 'C.UTF-8',
    XDG_CONFIG_HOME: grantsFolder,
    MAGICK_CONFIGURE_PATH: `${policyFolder}/ImageMagick`,
    MAGICK_THREAD_LIMIT: '1',
    MAGICK_TIME_LIMIT: String(Math.ceil(timeoutMs / 1000) + 1), // our own comes first, and is told from others
    MAGICK_TEMPORARY_PATH: cwd,
    TMPDIR: cwd,
    XDG_CACHE_HOME: cwd,
    ...MEMORY,
    ...(limits && {
      MAGICK_AREA_LIMIT: String(limits.pixels),
      MAGICK_MEMORY_LIMIT: String(limits.memoryBytes),
      MAGICK_LIST_LENGTH_LIMIT: String(listLength(limits)),
    }),
    ...own,
  };
}

/** Of ImageMagick's list of pictures: copies stand beside the frames while they are put together. */
export function listLength({ frames }: Pick<MagickLimits, 'frames'>): number {
  return 3 * frames + 12;
}
