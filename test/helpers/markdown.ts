import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder of the project, with a slash at its end. */
export const PROJECT = new URL('../../', import.meta.url).pathname;

const NOT_OURS = ['node_modules', 'dist', 'traces', '.git'];

interface CodeBlock {
  /** The word after the opening fence, or an empty string. */
  readonly language: string;
  readonly text: string;
}

export interface MarkdownFile {
  /** Relative to the project. */
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly CodeBlock[];
  /** The text of code spans, such as `npm start`. */
  readonly spans: readonly string[];
  /** The targets of links and images. */
  readonly links: readonly string[];
  /** The anchors of headings, as GitHub makes them. */
  readonly anchors: ReadonlySet<string>;
}

/** Reads every Markdown file of the project, without those of packages and builds. */
export function readDocuments(): readonly MarkdownFile[] {
  return globSync('**/*.md', { cwd: PROJECT, exclude: (name) => NOT_OURS.includes(name) })
    .sort()
    .map((path) => parseMarkdown(path, readFileSync(join(PROJECT, path), 'utf8')));
}

/** Reads what the tests need of a Markdown file, as far as these documents use Markdown. */
function parseMarkdown(path: string, text: string): MarkdownFile {
  const blocks: CodeBlock[] = [];
  // A list item indents its blocks.
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
      ...[...withoutCode.matchAll(/\]\(([^)\s]*)\)/g)],
      ...[...withoutCode.matchAll(/^\[[^\]]+\]: (\S+)/gm)],
      ...[...withoutCode.matchAll(/<(https?:[^>]*)>/g)],
    ].map(([, target = '']) => target),
    anchors: anchorsOf(prose),
  };
}

/** The commands of a block: all lines of a shell block, and those after a prompt in a console block. */
export function commandsIn({ language, text }: CodeBlock): readonly string[] {
  const lines = text.replaceAll('\\\n', '').split('\n');
  if (language === 'sh') return lines;
  return lines.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
}

/** The cells of the table rows of a section, which ends at the next heading of the same or a higher level. */
export function tableRows(text: string, heading?: string): readonly (readonly string[])[] {
  const section = heading === undefined ? text : sectionOf(text, heading);
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

function sectionOf(text: string, heading: string): string {
  const [, afterwards = ''] = text.split(`\n${heading}\n`);
  return afterwards.split(new RegExp(`^#{1,${heading.indexOf(' ')}} `, 'm'))[0] ?? '';
}

/** Lower case, without punctuation, with hyphens for spaces; a second one of the same name gets `-1`. */
function anchorsOf(prose: string): Set<string> {
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
