import { consoleRoutes } from '../console/routes.ts';
import { docsRoutes } from '../docs/routes.ts';
import type { Route } from '../http/route.ts';
import { ROUTES } from '../http/routes.ts';

/** Returns every route that a broker serves. `consoleBundle`: the folder of the console's bundle, where it is not the build's own. */
export const servedRoutes = (consoleBundle?: string): readonly Route[] => [
  ...ROUTES,
  ...consoleRoutes(consoleBundle),
  ...docsRoutes(ROUTES),
];
