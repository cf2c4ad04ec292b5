import { CommandFailed, type Run } from './run.ts';
import type { Magick } from './toolchain.ts';

/**
 * Whether ImageMagick obeys the policy that {@link Run} brings with it. It fails open: a
 * policy it cannot find or read leaves only the system's rules, in silence. So the very
 * program that will run is asked for something that only our policy forbids.
 */
export async function policyHolds(magick: Magick, run: Run): Promise<boolean> {
  try {
    await run({ file: magick.path, args: ['xc:red', 'png:/dev/null'], cwd: '/', timeoutMs: 10_000 });
    return false;
  } catch (error) {
    return error instanceof CommandFailed && error.reason === 'exit';
  }
}
