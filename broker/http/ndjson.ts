/** A list that is too long for an answer, one JSON value a line (application/x-ndjson), read as fast as it is taken. */
import { pipeline } from 'node:stream/promises';
import type { Services } from '../services.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

/** Whoever takes nothing for so long is gone. */
const PATIENCE_MS = 60_000;

/**
 * Answers the values of all pages. The next page is asked for when the one before has gone out, so one page is all that lies
 * here. When a page fails, or `stillMay` says no, the answer breaks off in the middle: nobody takes it for whole.
 */
export function ndjson(
  { services, stillMay }: Pick<Context, 'stillMay'> & { services: Services },
  pages: AsyncIterable<readonly unknown[]>,
): Reply {
  return {
    status: 200,
    type: 'application/x-ndjson',
    // For proxies that collect an answer before they pass it on (nginx).
    headers: { 'X-Accel-Buffering': 'no' },
    stream: (response) => {
      response.setTimeout(PATIENCE_MS, () => response.destroy());
      pipeline(lines(pages, stillMay), response).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') services.broker.log.warn({ err: error }, 'export aborted');
      });
    },
  };
}

async function* lines(pages: AsyncIterable<readonly unknown[]>, stillMay: () => Promise<boolean>) {
  for await (const page of pages) {
    if (page.length > 0) yield `${page.map((value) => JSON.stringify(value)).join('\n')}\n`;
    if (!(await stillMay())) throw new Error('the session has ended');
  }
}
