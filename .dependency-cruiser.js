import { Visitor } from '@swc/core/Visitor.js';

/**
 * Which part of the code may import what. `npm run lint` checks it; test/import-rules.test.ts
 * proves every rule by a violation.
 *
 * @type {import('dependency-cruiser').IConfiguration}
 */

// The visitor of swc, with which dependency-cruiser finds imports, has no case for `using`
// declarations.
const { visitStatement } = Visitor.prototype;
Visitor.prototype.visitStatement = function visit(statement) {
  if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
  statement.decls = this.visitVariableDeclarators(statement.decls);
  return statement;
};

/**
 * The one file that may import each outside library. A library that several files share is not
 * listed.
 */
const OWNERS = {
  '@blazediff/ssim': 'src/regress/image/difference.ts',
  '@hyzyla/pdfium': 'src/regress/image/codec.ts',
  '@redis/client': 'src/base/redis-client.ts',
  '@csstools/css-color-parser': 'src/images/svg/css.ts',
  '@csstools/css-parser-algorithms': 'src/images/svg/css.ts',
  '@csstools/css-tokenizer': 'src/images/svg/css.ts',
  archiver: 'src/server/respond/archive.ts',
  busboy: 'src/server/receive/multipart/normalizer.ts',
  'client-zip': 'src/web/actions/archive.ts',
  commander: 'src/cli/(program|convert-commands|regress|completion).ts',
  'content-disposition': 'src/server/respond/response.ts',
  cors: 'src/server/middleware.ts',
  culori: 'src/regress/image/difference.ts',
  execa: 'src/process/start.ts',
  'jxl-oxide-wasm': 'src/regress/image/codec.ts',
  'express-rate-limit': 'src/server/(clients|rate-limit|redis-store).ts',
  'express-static-gzip': 'src/server/routes/web-app.ts',
  'file-type': 'src/images/index.ts',
  'p-limit': 'src/(conversion/batch|process/fork-server/server|regress/record|cli/convert/verifier).ts',
  'prom-client': 'src/server/metrics.ts',
  'rate-limit-redis': 'src/server/redis-store.ts',
  sharp: 'src/regress/image/codec.ts',
  yaml: 'src/(regress/matrix|conversion/input/presets-file).ts',
  yauzl: 'src/files/unzip.ts',
};

/** Folders of src/ in their order: each imports only those before it. */
const ORDERS = [
  [
    'base',
    'tables',
    'files',
    'client',
    'images',
    'process',
    'conversion',
    'server',
    'web',
    'regress',
    'cli',
    'workers',
  ],
  ['plan', 'queue', 'output', 'request', 'limits', 'input', 'steps', 'measure'].map(
    (name) => `conversion/${name}`,
  ),
];

const forbid = (name, from, to) => ({ name, severity: 'error', from, to });

const LAYERS = [
  // A plan is derived from data. It imports tables, the properties of images, the encoding of the
  // copyright and itself.
  forbid(
    'plan-is-pure',
    { path: '^src/conversion/plan/' },
    {
      path: '.',
      pathNot: [
        '^src/conversion/plan/',
        '^src/tables/(fitting|formats|options|errors|notes|tools).ts$',
        '^src/images/(image-info|kinds|copyright/blocks).ts$',
      ],
    },
  ),
  // Readers of images know bytes. They know neither options nor plans, tools or requests.
  forbid(
    'images-know-bytes',
    { path: '^src/images/' },
    {
      path: '^src/',
      pathNot: '^src/(images/|tables/(errors|fitting|formats).ts$|base/text.ts$|folders.ts$)',
    },
  ),
  // Containers know how files are divided into parts, but not what the parts of a format mean.
  forbid(
    'containers-know-no-formats',
    { path: '^src/images/containers/' },
    { path: '^src/', pathNot: '^src/images/containers/' },
  ),
  // The process layer runs commands. Only src/conversion depends on formats.
  forbid(
    'process-knows-no-formats',
    { path: '^src/process/' },
    { path: '^src/(conversion/|tables/formats.ts$)' },
  ),
  // The HTTP layer converts through src/conversion.
  forbid('server-runs-no-process', { path: '^src/server/' }, { path: '^src/process/' }),
  // Conversion, processes and files work without HTTP.
  forbid(
    'core-knows-no-server',
    { path: '^src/(conversion|process|files)/' },
    { path: ['^src/server/', 'node_modules/(express|cors|content-disposition)'] },
  ),
  // Only the serve command starts the server.
  forbid(
    'cli-works-without-a-server',
    { path: '^src/(cli|regress)/', pathNot: '^src/cli/serve.ts$' },
    { path: '^src/server/' },
  ),
  // The API reference is made from tables and schemas. It reads no file and handles no request.
  forbid(
    'openapi-is-data',
    { path: '^src/server/openapi/' },
    { path: ['^src/(process|files)/', 'node_modules/express'], dependencyTypes: ['local', 'npm'] },
  ),
  // The page imports the formats, the options, the notes, the sizes of results and of drawings, and
  // text functions. It requests everything else over HTTP.
  forbid(
    'web-app-uses-the-api',
    { path: '^src/web/' },
    {
      path: '^src/',
      pathNot: [
        '^src/web/',
        '^src/(tables/(fitting|formats|options|notes)|base/(shell|text|name-pattern)|images/svg/svg-(size|markup)).ts$',
        '^src/client/library/',
      ],
    },
  ),
  // Applications copy the client. It imports nothing.
  forbid(
    'client-library-stands-alone',
    { path: '^src/client/library/' },
    { path: '.', pathNot: '^src/client/library/' },
  ),
  // Only the regress command and the worker of --verify load the second decoders.
  forbid(
    'server-loads-no-regress',
    { path: '^src/(?!regress|cli/regress|workers/verify-worker)' },
    { path: '^src/regress/(?!verifiable)' },
  ),
  // Loading the Redis client is slow. Only instances with REDIS_URL load it, by a dynamic import.
  forbid(
    'redis-client-on-demand',
    { path: '^src/', pathNot: '^src/server/redis-store.ts$' },
    {
      path: '^src/(base/redis-client|server/redis-store).ts$',
      dependencyTypesNot: ['dynamic-import', 'type-only'],
    },
  ),
  // src/process/start.ts starts every program, with execa.
  forbid('execa-starts-programs', { path: '^src/' }, { path: '^(node:)?child_process$' }),
  // Two files that import each other belong together in one file, and two folders in one folder.
  forbid('no-circles', {}, { circular: true }),
  { ...forbid('no-circles-of-folders', {}, { circular: true }), scope: 'folder' },
];

const order = ORDERS.flatMap((folders) =>
  folders
    .slice(0, -1)
    .map((folder, at) =>
      forbid(
        `order-of-${folder}`,
        { path: `^src/${folder}/` },
        { path: `^src/(${folders.slice(at + 1).join('|')})/` },
      ),
    ),
);

const owners = Object.entries(OWNERS).map(([library, owner]) =>
  forbid(
    `one-owner-of-${library}`,
    { path: '^src/', pathNot: `^${owner}$` },
    { path: `^node_modules/(@types/)?${library}/` },
  ),
);

export default {
  forbidden: [...LAYERS, ...order, ...owners],
  options: {
    parser: 'swc',
    doNotFollow: { path: 'node_modules' },
    // Without them, a library that can only be imported is not found, and no rule applies to it.
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
