/** @module Writes a PDF of the files that the commands of its plan have written. */
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { withoutTexts } from '../../images/colour/icc.ts';
import { differsFromSrgb, turnSize } from '../../images/image-info.ts';
import { readJpegProfile } from '../../images/jpeg/jpeg.ts';
import { PictureError, withFax, withJpeg, withPng } from '../../images/pdf/pdf-pictures.ts';
import { type PdfPicture, PdfWriter } from '../../images/pdf/pdf-writer.ts';
import type { ConversionInput } from '../context.ts';
import { pagesOfFewColours, transparentPages } from '../plan/document.ts';
import { layOutPage } from '../plan/page.ts';
import { nameFile, OUTPUT_STEM } from '../plan/step.ts';
import { type ConversionJob, type DocumentPage, type DocumentPlan, INPUT_FILE } from '../plan/types.ts';
import { invalidOutputError, isNoFile } from './tool-errors.ts';

interface Document {
  readonly source: Pick<ConversionInput, 'folder' | 'type' | 'label'>;
  readonly job: ConversionJob;
  readonly plan: DocumentPlan;
  readonly printed: string;
}

/**
 * Writes a PDF, and returns its bytes.
 *
 * @throws {ServiceError} CORRUPT_IMAGE, if a tool has not written a file that it should have
 */
export async function writeDocument(path: string, document: Document): Promise<number> {
  const { job, printed } = document;
  const [transparent, fewColours] = [transparentPages(printed), pagesOfFewColours(job, printed)];
  return PdfWriter.create(path, OUTPUT_STEM, async (pdf) => {
    for (const [at, { mask, ...page }] of document.plan.pages.entries()) {
      const shown = { ...page, mask: transparent.has(at) ? mask : undefined };
      await addPage(pdf, shown, fewColours.has(at), document);
    }
  }).catch(async (error) => {
    await rm(path, { force: true });
    if (error instanceof PictureError || isNoFile(error))
      throw invalidOutputError(error.message, document.source);
    throw error;
  });
}

async function addPage(
  pdf: PdfWriter,
  page: DocumentPage,
  hasFewColours: boolean,
  document: Document,
): Promise<void> {
  const { job, plan } = document;
  const fileOf = (name: string): string => join(document.source.folder, nameFile(name, job.suffix));
  const mask = page.mask ? await withPng(fileOf(page.mask), (picture) => pdf.addPicture(picture)) : undefined;
  await withPicture(page, hasFewColours, document, fileOf, async (picture) => {
    const { resolution, orientation } = page;
    const shown = turnSize(picture, orientation);
    const layout = layOutPage(shown, resolution, plan);
    await pdf.addPage({ ...layout, orientation }, await pdf.addPicture(picture, mask));
  });
}

/** Uses the picture of the best file of a page. */
async function withPicture(
  { jpeg, png, fax }: DocumentPage,
  hasFewColours: boolean,
  { job, plan: { keepsMetadata } }: Document,
  fileOf: (name: string) => string,
  use: (picture: PdfPicture) => Promise<void>,
): Promise<void> {
  if (jpeg && !(png && hasFewColours)) {
    const { image, options, isEmbedded } = job;
    const hasProfile = isEmbedded && differsFromSrgb(image.profile);
    const stated = hasProfile ? await readJpegProfile(fileOf(INPUT_FILE)) : undefined;
    const profile = stated && options.metadata === 'none' ? withoutTexts(stated) : stated;
    return withJpeg(fileOf(jpeg), { profile, keepsMetadata }, use);
  }
  return withPng(fileOf(png as string), async (picture) => {
    const { bits, colours } = picture;
    const isBlackAndWhite = bits === 1 && colours === 'grey';
    if (!fax || !isBlackAndWhite) return use(picture);
    const { size } = await stat(fileOf(png as string));
    return withFax(fileOf(fax), (found) => use(found.length < size ? found : picture));
  });
}
