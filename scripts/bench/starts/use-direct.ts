/** @module Module hook for `node --import`: makes the server load `direct.ts` instead of its launchers. */
import { registerHooks } from 'node:module';

registerHooks({
  resolve: (specifier, context, next) =>
    specifier.endsWith('/launcher/launcher.ts')
      ? { url: new URL('./direct.ts', import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
});
