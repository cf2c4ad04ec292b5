/** @module Vite configuration of the web page and of the page of the API reference. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import sharp from 'sharp';
import { defineConfig, type Plugin } from 'vite';
import { OPTIONS } from './src/tables/options.ts';

/** Builds `src/web/` into `dist/web/`, from where the server serves it. */
export default defineConfig({
  root: 'src/web',
  base: './', // the page can be below a path of a proxy
  build: {
    outDir: '../../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // the page's Content-Security-Policy allows data: URLs only for images
    modulePreload: { polyfill: false }, // the browsers that the page needs have it
    chunkSizeWarningLimit: 2_000, // Swagger UI, in kB
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: {
        page: 'src/web/index.html',
        docs: 'src/web/docs.html',
      },
      checks: { bundlerTimings: false },
    },
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [shortOptions(), swaggerUiNotices(), icons(), compressed()],
  logLevel: 'warn',
});

/** Leaves out what the page does not use of the table of options: the texts of the API reference and of the command line. */
function shortOptions(): Plugin {
  const unused = ['description', 'examples', 'flag', 'section'];
  const rows = JSON.stringify(OPTIONS, (key, value) => (unused.includes(key) ? undefined : value));
  return {
    name: 'short-options',
    enforce: 'pre',
    transform: {
      filter: { id: /\/src\/tables\/options\.ts$/ },
      handler: (code) => code.replace(/(?<=^export const OPTIONS = ){.*?^}/ms, () => rows),
    },
  };
}

/** Adds the notices that must accompany Swagger UI: its own (Apache License 2.0, section 4) and those of its libraries. */
function swaggerUiNotices(): Plugin {
  return {
    name: 'swagger-ui-notices',
    async generateBundle() {
      for (const name of ['NOTICE', 'swagger-ui-bundle.js.LICENSE.txt']) {
        const source = await readFile(join('node_modules/swagger-ui-dist', name));
        this.emitFile({ type: 'asset', fileName: join('docs', name), source });
      }
    },
  };
}

/** Icons of the installed page: file name, side in pixels, and space around the logo as a fraction of the side. */
const ICONS = [
  ['icon-192.png', 192, 0],
  ['icon-512.png', 512, 0],
  ['icon-maskable-512.png', 512, 0.15],
] as const;

/** Draws the icons of the manifest from the logo. A maskable icon is cut to the shape that the system has for icons. */
function icons(): Plugin {
  return {
    name: 'icons',
    async generateBundle() {
      for (const [fileName, side, space] of ICONS) {
        const extend = Math.round(side * space);
        const logo = sharp('src/web/icon.svg', { density: 72 * 16 }).resize(side - 2 * extend);
        const source = await logo
          .extend({ ...around(extend), background: '#f3f6f3' })
          .png()
          .toBuffer();
        this.emitFile({ type: 'asset', fileName, source });
      }
    },
  };
}

const around = (space: number) => ({ top: space, right: space, bottom: space, left: space });

const compressBrotli = promisify(brotliCompress);
const compressGzip = promisify(gzip);
/** Brotli level. The highest level, 11, takes 30 times as long, and saves 9%. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
const GZIP = { level: constants.Z_BEST_COMPRESSION };

/** Writes a brotli and a gzip version beside every served file, so that the server does not compress per request. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    async writeBundle({ dir = '' }, bundle) {
      const names = Object.keys(bundle).filter((name) => /\.(?:html|js|css|svg)$/.test(name));
      await Promise.all(
        names.map(async (name) => {
          const path = join(dir, name);
          const content = await readFile(path);
          await writeFile(`${path}.br`, await compressBrotli(content, BROTLI));
          await writeFile(`${path}.gz`, await compressGzip(content, GZIP));
        }),
      );
    },
  };
}
