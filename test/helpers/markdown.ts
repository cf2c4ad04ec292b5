import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Root folder of the project, with a trailing slash. */
export const PROJECT = new URL('../../', import.meta.url).pathname;

const EXCLUDED_FOLDERS = ['node_modules', 'dist', 'release', 'traces', '.git'];

interface CodeBlock {
  /** Word after the opening fence, or an empty string. */
  readonly language: string;
  readonly text: string;
}

export interface MarkdownFile {
  /** Path relative to the project. */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
  /** Text of code spans, such as `npm start`. */
  readonly spans: readonly string[];
  /** Targets of links and images. */
  readonly links: readonly string[];
  /** Anchors of headings, as GitHub generates them. */
  readonly anchors: ReadonlySet<string>;
}

/** Reads every Markdown file of the project, except those of packages and builds. */
export function readDocuments(): readonly MarkdownFile[] {
  return globSync('**/*.md', { cwd: PROJECT, exclude: (name) => EXCLUDED_FOLDERS.includes(name) })
    .sort()
    .map((path) => parseMarkdown(path, readFileSync(join(PROJECT, path), 'utf8')));
}

export const documentAt = (path: string): MarkdownFile =>
  parseMarkdown(path, readFileSync(join(PROJECT, path), 'utf8'));

/** Parses the parts of a file that the tests need. Supports the Markdown that the documents use. */
function parseMarkdown(path: string, text: string): MarkdownFile {
  const blocks: CodeBlock[] = [];
  // Blocks in list items are indented.
  const prose = text.replace(
    /^( *)```(\w*)\n([\s\S]*?)^ *```$/gm,
    (_, indent: string, language: string, body: string) => {
      blocks.push({ language, text: body.replaceAll(new RegExp(`^${indent}`, 'gm'), '') });
      return '';
    },
  );
  const withoutCode = prose.replaceAll(/`[^`\n]+`/g, '');
  return {
    path,
    text,
    blocks,
    spans: [...prose.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span),
    links: [
      ...withoutCode.matchAll(/\]\(([^)\s]*)\)/g),
      ...withoutCode.matchAll(/^\[[^\]]+\]: (\S+)/gm),
      ...withoutCode.matchAll(/<(https?:[^>]*)>/g),
    ].map(([, target = '']) => target),
    anchors: collectAnchors(prose),
  };
}

/**
 * Returns the commands of a block: all lines of a shell block, or the lines after a prompt in a
 * console block.
 */
export function commandsIn({ language, text }: CodeBlock): readonly string[] {
  const lines = text.replaceAll('\\\n', '').split('\n');
  if (language === 'sh') return lines;
  return lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
}

/**
 * Returns the cells of all table rows in a section, which ends at the next heading of the same or a
 * higher level.
 */
export function tableRows(text: string, heading?: string): readonly (readonly string[])[] {
  const section = heading === undefined ? text : findSection(text, heading);
  return section
    .split('\n')
    .filter((line) => line.startsWith('|') && !/^\|[-|\s]+\|$/.test(line))
    .map((line) =>
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}

/** Returns the text between a heading and the next one of the same or a higher level. */
export function findSection(text: string, heading: string): string {
  const [, afterwards = ''] = text.split(`\n${heading}\n`);
  return afterwards.split(new RegExp(`^#{1,${heading.indexOf(' ')}} `, 'm'))[0] ?? '';
}

/**
 * Generates anchors: lower case, without punctuation, hyphens for spaces. Duplicates get a suffix
 * such as `-1`.
 */
function collectAnchors(prose: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of prose.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
