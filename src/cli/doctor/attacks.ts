/** @module The attacks of `doctor --attack`: what each sends, and what should stop it. */
import { gzipSync } from 'node:zlib';
import { ONE_PIXEL } from '../../process/policy.ts';
import { ALL_INPUT_TYPES, INPUTS, type InputType } from '../../tables/formats.ts';
import * as made from './attack-files.ts';
import type { Layer, Outcome, Site } from './attack-senders.ts';
import * as senders from './attack-senders.ts';

const { MARKER, cleaned, codec, drawing, dripping, file, magick, named, oneConnection } = senders;

export interface Attack {
  readonly name: string;
  /** What must happen. */
  readonly must: string;
  readonly expected: Layer;
  /** The format that the service must read for this attack. Otherwise, the file's type stops it. */
  readonly needs: InputType;
  readonly send: (site: Site) => Promise<Outcome>;
}

/** Names of files start with that of their format, `JPEG XL` with two. All services read PNG. */
const needs = (name: string): InputType =>
  ALL_INPUT_TYPES.findLast((type) => name.startsWith(INPUTS[type].label)) ?? 'png';
const rows = (expected: Layer, must: string, sends: Readonly<Record<string, Attack['send']>>): Attack[] =>
  Object.entries(sends).map(([name, send]) => ({ name, must, expected, needs: needs(name), send }));

/** What happens to a file of a format that the service does not read. */
export const BY_TYPE = { expected: 'type', must: 'not an image of a supported format' } as const;
const EARLY = 'stopped before a tool started';
const PAGES = { format: 'png', pages: '1-1000' };
const ESCAPING = [{ name: '../../ran', content: ONE_PIXEL }];
const entity = ({ folder }: Site) => `<!DOCTYPE svg [<!ENTITY e SYSTEM "file://${folder}/secret.txt">]>`;
const launch = ({ folder }: Site) => `/OpenAction<</S/Launch/F(/bin/sh)/P(-c "touch ${folder}/ran")>>`;
const text = (content: string) => (site: Site) => file(site, Buffer.from(content, 'latin1'));
const WEB_PAGE = Buffer.concat([ONE_PIXEL, Buffer.from(`<script>${MARKER}</script>`)]);
/** Sends an SVG that inflates to more than the limit: gzip members of a megabyte each. */
const inflating = (site: Site) => {
  const blanks = made.repeat(gzipSync(Buffer.alloc(1e6, ' ')), Math.ceil(site.config.MAX_FILE_BYTES / 1e6));
  return file(site, Buffer.concat([gzipSync(made.svg('')), blanks]));
};

/** All attacks, in the order in which they are made. */
export const ATTACKS: readonly Attack[] = [
  ...rows(BY_TYPE.expected, BY_TYPE.must, {
    'MVG that runs a command': text(`push graphic-context\nfill 'url(https://127.0.0.1:9/"|id; ")'\n`),
    'MVG that deletes a file': text("push graphic-context\nimage over 0,0 0,0 'ephemeral:/nonexistent'\n"),
    'MSL that writes a file': text('<image><read filename="x"/><write filename="y"/></image>'),
    'EPS with a TIFF preview': text(`\xc5\xd0\xd3\xc6${'\x1e\0\0\0'.repeat(6)}\xff\xff%!PS-Adobe-3.0\nII*\0`),
    'a command in place of an image': text('|id'),
  }),
  ...rows('policy', 'refused by ImageMagick', {
    'mvg: that draws another file': (site) => magick(site, 'mvg:script.mvg'),
    'msl: that writes another file': (site) => magick(site, 'msl:script.msl'),
    'label:@ that draws the text of a file': (site) => magick(site, 'label:@secret.txt'),
  }),
  ...rows('librsvg', 'nothing outside of the SVG is used', {
    'SVG that shows a file': (site) => drawing(site, made.imageAt(`file://${site.folder}/secret.png`)),
    'SVG that requests a URL': (site) => drawing(site, made.imageAt(`${site.service.origin}/x`)),
    'SVG that includes a file': (site) => drawing(site, made.textAt(`${site.folder}/secret.txt`)),
    'SVG with a file as an entity': (site) => drawing(site, '<text y="50">&e;</text>', entity(site)),
    'SVG of nested entities': (site) => drawing(site, '<text>&m;</text>', made.billionLaughs),
  }),
  ...rows('time limit', 'killed', {
    'SVG of ten million references': (site) => file(site, made.nestedUses),
    'JPEG XL that decodes for ever': (site) => file(site, made.slowJxl(20_000)),
  }),
  ...rows('MAX_FILE_BYTES', EARLY, { 'SVG that inflates a thousandfold': inflating }),
  ...rows('MAX_PIXELS', EARLY, {
    'PNG of 144 megapixels in 70 bytes': (site) => file(site, made.withDeclaredSize(12e3, 12e3)),
  }),
  ...rows('MAX_TOTAL_PIXELS', EARLY, {
    'GIF of 400 frames of 4 megapixels': (site) =>
      file(site, made.longGif(400, 2000), { fields: { format: 'webp' } }),
  }),
  ...rows('MAX_FRAMES', EARLY, { 'GIF of 10 001 frames': (site) => file(site, made.longGif(10_001, 1)) }),
  ...rows('MAX_FRAMES', 'stopped before a page is drawn', {
    'PDF of 10 000 pages and boxes': (site) => file(site, made.pdfOf(10_000), { fields: PAGES }),
  }),
  ...rows('poppler', 'not carried out', {
    'PDF that launches a program': (site) => cleaned(site, made.pdfOf(1, launch(site)), 'poppler'),
  }),
  ...rows('file check', 'each is read once', {
    'TIFF whose directory follows itself': (site) => cleaned(site, made.circularTiff(), 'file check'),
  }),
  ...rows('new file', 'not in the result', {
    'PNG with 10 MB of text in 10 kB': (site) => cleaned(site, made.pngWithText(MARKER, 1e7), 'new file'),
    'PNG that is also a web page': (site) => cleaned(site, WEB_PAGE, 'new file'),
  }),
  ...rows('name check', 'not in the name of the result', {
    'name with a path and a drive of Windows': (site) => named(site, 'C:\\..\\..\\a.png'),
    'name of bidirectional characters': (site) => named(site, 'a\u202egnp.exe.png'),
  }),
  ...rows('file check', 'refused', {
    'name of control characters': (site) => named(site, 'a\u0007.png'),
    'ZIP with a path out of the archive': (site) => file(site, made.makeZip(ESCAPING), { path: 'batch' }),
  }),
  ...rows('time limit', 'closed, and others are answered', { '60 connections that drip': dripping }),
  ...rows('request limit', 'the connection is closed', {
    '5000 pipelined requests': (site) => oneConnection(site, '', 5000, 50),
    'a header of 60 kB': (site) => oneConnection(site, `X-A: ${'a'.repeat(60_000)}\r\n`, 1, 0),
  }),
  ...rows('Landlock', 'denied', {
    'taken-over codec: read a file': (site) => codec(site, 'read', `${site.folder}/secret.txt`),
    'taken-over codec: write to a file': (site) => codec(site, 'append', `${site.folder}/secret.txt`),
    'taken-over codec: make more files': (site) => codec(site, 'make', '.'),
  }),
  ...rows('seccomp', 'denied', {
    'taken-over codec: run a program': (site) => codec(site, 'execve'),
    'taken-over codec: use the network': (site) => codec(site, 'socket-inet'),
    'taken-over codec: send a signal': (site) => codec(site, 'signal'),
    'taken-over codec: start a process': (site) => codec(site, 'process'),
    'taken-over codec: read memory of others': (site) => codec(site, 'process_vm_readv'),
  }),
  ...rows('memory limit', 'denied', {
    'taken-over codec: take 64 GiB of memory': (site) => codec(site, 'memory'),
  }),
];
