import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** Builds the page of src/web/ into dist/web/, where the server finds it. */
export default defineConfig({
  root: 'src/web',
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the page's Content-Security-Policy allows no data: but in pictures
    modulePreload: false, // there is one script
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressed()],
  logLevel: 'warn',
});

/** Puts a brotli and a gzip version beside every file, so that no request has to wait for one. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    async writeBundle({ dir = '' }) {
      const entries = await readdir(dir, { recursive: true, withFileTypes: true });
      for (const entry of entries.filter((one) => one.isFile())) {
        const path = join(entry.parentPath, entry.name);
        const content = await readFile(path);
        const best = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
        await writeFile(`${path}.br`, brotliCompressSync(content, best));
        await writeFile(`${path}.gz`, gzipSync(content, { level: constants.Z_BEST_COMPRESSION }));
      }
    },
  };
}
