import type { RequestHandler, Router } from 'express';
import { fail } from '../errors.ts';

export type Method = 'GET' | 'POST';

/** The methods of a path, as `Allow` lists them. */
export const ALLOWED: Readonly<Record<Method, string>> = { GET: 'GET, HEAD, OPTIONS', POST: 'POST, OPTIONS' };

/** A path with its one method; OPTIONS says which it is, and every other is refused with it. */
export function endpoint(router: Router, method: Method, path: string, handler: RequestHandler): void {
  const allowed = ALLOWED[method];
  const route = router.route(path);
  if (method === 'GET') route.get(handler);
  else route.post(handler);
  route.all((req, res) => {
    res.setHeader('Allow', allowed);
    if (req.method !== 'OPTIONS') throw fail('METHOD_NOT_ALLOWED', req.method, allowed);
    res.status(204).end();
  });
}
