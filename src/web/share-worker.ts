/**
 * @module Service worker for images that a phone shares with the installed page. It receives them and gives them to the page.
 * It handles no other request, and stores nothing.
 */

/** The part of a service worker's events that is used here. TypeScript cannot load their types beside those of a page. */
interface FetchEvent extends Event {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

/** Name of the form field in the manifest. */
const FIELD = 'files';

let shared: Promise<FormData> | undefined;

addEventListener('fetch', (event) => {
  const { request } = event as FetchEvent;
  if (request.method !== 'POST') return;
  shared = request.formData();
  (event as FetchEvent).respondWith(shared.then(() => Response.redirect('/#shared', 303)));
});

/** The page asks for the images once it has loaded. */
addEventListener('message', async ({ ports }) => {
  ports[0]?.postMessage((await shared)?.getAll(FIELD) ?? []);
  shared = undefined;
});
