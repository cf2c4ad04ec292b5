/** @module The examples of docs/recipes.md, and the npm packages that they need. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findSection, PROJECT } from './markdown.ts';
import { execute } from './process.ts';

/** Without a connection, npm gives up after a few seconds. */
const NPM_OPTIONS = ['--no-audit', '--no-fund', '--ignore-scripts', '--prefer-offline', '--fetch-retries=1'];
const INSTALL_TIMEOUT_MS = 300_000;

/**
 * Returns an example of docs/recipes.md. It requests the service of the test, and imports the
 * source of the client.
 *
 * @param heading the heading above it, with its number signs
 * @param language the word after the opening fence
 * @param base address of the API
 */
export async function readRecipe(heading: string, language: string, base: string): Promise<string> {
  const section = findSection(await readFile(join(PROJECT, 'docs/recipes.md'), 'utf8'), heading);
  const [, example = ''] = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'ms').exec(section) ?? [];
  if (!example) throw new Error(`docs/recipes.md has no ${language} below ${heading}`);
  return example
    .replaceAll('imagemill-client', join(PROJECT, 'src/client/library/index.ts'))
    .replaceAll('http://localhost:3000', base.replace('/api/v1', ''));
}

/**
 * Installs npm packages of exact versions into a folder.
 *
 * @throws {Error} if npm's registry does not respond
 */
export async function installPackages(folder: string, packages: readonly string[]): Promise<void> {
  await writeFile(join(folder, 'package.json'), '{"private":true}');
  const options = { cwd: folder, timeout: INSTALL_TIMEOUT_MS };
  await execute('npm', ['install', ...NPM_OPTIONS, ...packages], options).catch(({ message }: Error) => {
    throw new Error(`npm cannot install ${packages[0]}, which needs its registry: ${message}`);
  });
}
