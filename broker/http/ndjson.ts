/** A list that is too long for an answer, one JSON value a line (application/x-ndjson), read as fast as it is taken. */
import type { Services } from '../services.ts';
import { answerPieces } from './pieces.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

/** Answers the values of all pages, as `answerPieces` does. */
export const ndjson = (
  context: Pick<Context, 'stillMay'> & { services: Services },
  pages: AsyncIterable<readonly unknown[]>,
): Reply => answerPieces(context, 'application/x-ndjson', lines(pages));

async function* lines(pages: AsyncIterable<readonly unknown[]>) {
  for await (const page of pages)
    yield page.length > 0 ? `${page.map((value) => JSON.stringify(value)).join('\n')}\n` : '';
}
