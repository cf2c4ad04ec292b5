/**
 * @module Mocha's configuration of `npm run test:full`: the exhaustive tests, which `npm test` leaves out. They repeat one check for
 * many files, formats, options or damages, convert thousands of files, start many services or commands, or need an installed package
 * or another server. The slowest files start first.
 */
import { globSync } from 'node:fs';
import base from '../.mocharc.json' with { type: 'json' };

/** The exhaustive tests. */
export const FULL_TESTS = [
  'test/conversion/edits.test.ts', // all kinds of files in all formats
  'test/docker/slurm.test.ts', // 10 000 files in a cluster of two nodes
  'test/process/fork-server/same-bytes.test.ts', // all fixtures with random options
  'test/process/fork-server/arbitrary-requests.test.ts', // random requests
  'test/cli/convert-shard.test.ts', // 400 files
  'test/conversion/same-as-single.test.ts', // all fixtures in several variants
  'test/service/stalls.test.ts', // all attacks on the event loop
  'test/service/fixtures.test.ts', // all traps in several formats
  'test/cli/convert-verify.test.ts', // faults in all formats
  'test/cli/convert-verify-sources.test.ts', // all kinds of sources
  'test/regress/planted.test.ts', // all defects and harmless changes in two sizes
  'test/regress/baseline.test.ts', // all fixtures in all formats
  'test/service/extra-outputs.test.ts', // a third of the pairs of inputs and outputs of which one is optional
  'test/service/multipart.test.ts', // random bodies, and a thousand files
  'test/service/svg-features.test.ts',
  'test/web/same-as-browser.test.ts', // all images and options of the page
  'test/web/firefox.test.ts', // a second browser
  'test/web/queue.test.ts', // all states of many files
  'test/web/own-options.test.ts', // 200 files
  'test/web/cropping.test.ts', // all handles and keys
  'test/web/comparing.test.ts',
  'test/web/phone.test.ts',
  'test/client/generated.test.ts', // installs generators of clients
  'test/client/recipes.test.ts', // installs libraries of the examples
  'test/client/package.test.ts', // installs the package in other JavaScript runtimes
  'test/service/batch-zip.test.ts',
  'test/process/sandbox/broken-codec.test.ts', // all forbidden actions of a codec
  'test/conversion/threads.test.ts', // two images in all formats, with one thread and with four
  'test/service/docs.test.ts', // the reference of the API in a browser
  'test/web/accessibility.test.ts', // all states of the page in all modes
  'test/service/reference.test.ts', // all documented responses
  'test/package.test.ts', // installs the package
  'test/docker/nginx.test.ts', // nginx before the service
  'test/docker/kubernetes.test.ts', // the schemas of all resources
  'test/service/damaged.test.ts', // all kinds of damage
  'test/service/attention.test.ts', // nine pictures, and each type of file
  'test/service/fitting.test.ts', // each fit of each kind of file
  'test/service/resizing.test.ts',
  'test/service/drawing-size.test.ts', // random sizes, and all ways to state one
  'test/service/truncated.test.ts', // all files, truncated at many bytes
  'test/service/upright-metadata.test.ts', // six pairs of formats
  'test/process/policy-bypass.test.ts', // all formats of ImageMagick
  'test/process/sandbox/codec-calls.test.ts', // all kinds of images in each codec
  'test/service/early-refusal.test.ts', // bodies of 24 MiB from all clients
  'test/service/extra-hostile.test.ts', // all kinds of hostile files
  'test/service/identify-fixtures.test.ts', // all fixtures
  ...globSync('test/service/{avif,bmp,jp2,png,tiff}-kinds.test.ts').sort(), // the kinds of public test suites
  'test/main.test.ts', // these start many services or commands
  'test/stability.test.ts',
  'test/regress/command.test.ts',
  ...globSync(
    'test/cli/{convert-result-names,convert-update,convert-url,convert-watch,doctor,serve,start}.test.ts',
  ).sort(),
  ...globSync('test/conversion/{disk-reservation,trim,watermark}.test.ts').sort(),
  ...globSync('test/service/{access,batch-faults,clients,connections,copyright,extra-inputs}.test.ts').sort(),
  ...globSync(
    'test/service/{extra-settings,fairness,faults,identify,limits,max-bytes,metrics}.test.ts',
  ).sort(),
  ...globSync(
    'test/service/{pdf-inputs,presets,rate-limit,reasons,shared-counters,slow-readers}.test.ts',
  ).sort(),
  ...globSync('test/web/{converting,list,presets,serving}.test.ts').sort(), // each starts a browser
  'test/service/embedded-profiles.test.ts', // samples of profiles and formats, some beside Chromium
  'test/service/declared-colours.test.ts',
  'test/scripts/fidelity.test.ts', // programs that judge folders of images
  'test/scripts/fuzz.test.ts',
  'test/scripts/fixtures.test.ts', // all fixtures are generated again
  'test/images/fuzz.test.ts', // random damage to all fixtures
  'test/conversion/key-and-bytes.test.ts', // all fixtures in all formats
  'test/conversion/copyright.test.ts', // all fixtures, each in every other format
  'test/conversion/repair-fuzz.test.ts',
];

export default { ...base, jobs: 4, spec: FULL_TESTS };
