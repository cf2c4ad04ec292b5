/** @module Vite configuration of the program that Node.js runs: the command line and the server. */
import { defineConfig } from 'vite';

/**
 * Joins `src/main.ts`, its modules and its libraries into a few files of `dist/`. Node.js loads them in less than half of the
 * time of 770 single files (`bench/README.md`).
 */
export default defineConfig({
  build: {
    ssr: 'src/main.ts',
    outDir: 'dist',
    target: 'node22',
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      output: { entryFileNames: '[name].js', chunkFileNames: '[name].js' },
      checks: { bundlerTimings: false },
    },
  },
  ssr: {
    noExternal: true,
    // Libraries that load other files of their packages: native code and WebAssembly.
    external: ['sharp', '@hyzyla/pdfium'],
  },
  logLevel: 'warn',
});
