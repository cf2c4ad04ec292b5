/** @module Vite configuration of the program that Node.js runs: the command line and the server. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineConfig, type Plugin } from 'vite';

/** Joins the programs of `src/`, their modules and their libraries into a few files of `dist/`, which load faster (`bench/README.md`). */
export default defineConfig({
  build: {
    ssr: true,
    outDir: 'dist',
    target: 'node22',
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      input: {
        main: 'src/main.ts',
        'svg-worker': 'src/workers/svg-worker.ts',
        'compare-worker': 'src/workers/compare-worker.ts',
        'remove-worker': 'src/workers/remove-worker.ts',
        'verify-worker': 'src/workers/verify-worker.ts',
      },
      output: {
        entryFileNames: '[name].js',
        chunkFileNames: '[name].js',
        charset: 'ascii',
        comments: { jsdoc: false, annotation: false, legal: true },
      },
      checks: { bundlerTimings: false },
    },
  },
  ssr: {
    noExternal: true,
    // Libraries that load other files of their packages: native code and WebAssembly.
    external: ['sharp', '@hyzyla/pdfium', 'jxl-oxide-wasm'],
  },
  plugins: [missingLicenses()],
  logLevel: 'warn',
});

/** Libraries under the MIT licence whose packages have no licence file, and their copyright lines. */
const COPYRIGHT_LINES: Readonly<Record<string, string>> = {
  '@redis/client': 'Copyright (c) 2022-2025, Redis, inc.',
  isarray: 'Copyright (c) 2013 Julian Gruber <julian@juliangruber.com>',
};

/** Adds the licences that Vite does not find. The MIT licence requires its text in every copy. */
function missingLicenses(): Plugin {
  return {
    name: 'missing-licenses',
    async writeBundle({ dir = '' }) {
      const mit = await readFile('node_modules/execa/license', 'utf8');
      const permission = mit.slice(mit.indexOf('Permission is hereby granted')).trimEnd();
      const path = join(dir, 'licenses.md');
      let licenses = await readFile(path, 'utf8');
      for (const [library, copyright] of Object.entries(COPYRIGHT_LINES)) {
        const heading = new RegExp(`^## ${library} .*$`, 'm');
        licenses = licenses.replace(heading, (found) => `${found}\n\n${copyright}\n\n${permission}`);
      }
      await writeFile(path, licenses);
    },
  };
}
