/** Public documents may be read by pages of any site (Fetch standard, CORS protocol); nothing else may. */
import type { ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';

/** Adds the permission to every answer, refusals included. Never with credentials: public documents need none. */
export function allowAnyOrigin(response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
}

/** Answers a preflight request. */
export const answerPreflight: RequestHandler = (_request, response) => {
  response.writeHead(204, {
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': 'GET, HEAD',
    'Access-Control-Allow-Headers': '*',
    'Access-Control-Max-Age': '86400',
    'Cache-Control': 'no-store',
  });
  response.end();
};
