import { registerHooks } from 'node:module';

/** @module With `node --import`, has the server load `direct.ts` in the place of its launchers. */

registerHooks({
  resolve: (specifier, context, next) =>
    specifier.endsWith('/launcher/launchers.ts')
      ? { url: new URL('./direct.ts', import.meta.url).href, shortCircuit: true }
      : next(specifier, context),
});
