/** An answer in pieces of text that is too long to be made at once: read as fast as it is taken. */
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Services } from '../services.ts';
import { cutShort } from './leaving.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

/** Whoever takes nothing for so long is gone. */
const PATIENCE_MS = 60_000;

/**
 * Answers all pieces; an empty one is a moment to look whether whoever asked still may. The next piece is asked for when the one
 * before has gone out, so one is all that lies here. When one fails, or `stillMay` says no, the answer breaks off in the middle: nobody
 * takes it for whole.
 */
export function answerPieces(
  { services, stillMay }: Pick<Context, 'stillMay'> & { services: Services },
  type: string,
  pieces: AsyncIterable<string>,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  return {
    status: 200,
    type,
    // For proxies that collect an answer before they pass it on (nginx).
    headers: { 'X-Accel-Buffering': 'no', ...headers },
    stream: (response) => {
      response.setTimeout(PATIENCE_MS, () => cutShort(response));
      pipeline(whileAllowed(pieces, stillMay, response), response).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE') services.broker.log.warn({ err: error }, 'export aborted');
      });
    },
  };
}

async function* whileAllowed(
  pieces: AsyncIterable<string>,
  stillMay: () => Promise<boolean>,
  response: ServerResponse,
) {
  try {
    for await (const piece of pieces) {
      if (piece !== '') yield piece;
      if (!(await stillMay())) throw new Error('the session has ended');
    }
  } catch (error) {
    // Before the pipeline closes it in good order.
    cutShort(response);
    throw error;
  }
}
