/** Public documents may be read by pages of any site (Fetch standard, CORS protocol); nothing else may. */
import type { ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';

/** Puts the permission on whatever is answered, refusals too. Never with credentials: there are none to send. */
export function allowAnyOrigin(response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
}

/** Answers a preflight: what a browser asks before a request with headers of its own. */
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
