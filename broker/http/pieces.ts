/** Streams an answer that is too long to be built at one time, with back-pressure. */
import type { ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Services } from '../services.ts';
import { endIncomplete } from './disconnects.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

/** A client that reads nothing for this time is disconnected. */
const TIMEOUT_MS = 60_000;

/**
 * Streams all pieces; an empty piece only checks `stillMay`. The next piece is requested after the one before was written, so at most one is
 * buffered. When a piece fails, or `stillMay` returns false, the answer is cut off, so that it is not taken for complete.
 */
export function answerPieces(
  { services, stillMay }: Pick<Context, 'stillMay'> & { services: Services },
  type: string,
  pieces: AsyncIterable<string>,
): Reply {
  return {
    status: 200,
    type,
    // Turns off the response buffering of nginx.
    headers: { 'X-Accel-Buffering': 'no' },
    stream: (response) => {
      response.setTimeout(TIMEOUT_MS, () => endIncomplete(response));
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
    // Runs before the pipeline ends the answer regularly.
    endIncomplete(response);
    throw error;
  }
}
