/**
 * @module Service worker for images that a phone shares with the installed page. It receives them and gives them to the page.
 * It handles no other request, and stores nothing.
 */

/** The part of a service worker's events that is used here. TypeScript cannot load their types beside those of a page. */
interface FetchEvent extends Event {
  readonly request: Request;
  respondWith(response: Response | Promise<Response>): void;
}

/** Name of the form field in the manifest. */
const FIELD = 'files';
/** `Origin` of requests from the system, and from pages that hide theirs. */
const UNKNOWN_ORIGIN = 'null';

let shared: { readonly files: Promise<readonly File[]>; readonly isFromHere: boolean } | undefined;

addEventListener('fetch', (event) => {
  const { request } = event as FetchEvent;
  if (request.method !== 'POST') return;
  const respond = (response: Response | Promise<Response>) => (event as FetchEvent).respondWith(response);
  const origin = request.headers.get('origin') ?? UNKNOWN_ORIGIN;
  const isFromHere = origin === location.origin;
  // The form of another site.
  if (!isFromHere && origin !== UNKNOWN_ORIGIN) return respond(Response.redirect('./', 303));
  const files = readFiles(request);
  shared = { files, isFromHere };
  respond(files.then(() => Response.redirect('./#shared', 303)));
});

/** Returns the files of a form; none if the body is no form. */
async function readFiles(request: Request): Promise<readonly File[]> {
  const form = await request.formData().catch(() => undefined);
  return form?.getAll(FIELD).filter((value) => value instanceof File) ?? [];
}

/** The page asks for the images once it has loaded. */
addEventListener('message', async ({ ports }) => {
  const { files, isFromHere } = shared ?? {};
  shared = undefined;
  ports[0]?.postMessage({ files: (await files) ?? [], isFromHere });
});
