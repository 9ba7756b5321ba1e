/** Streams a list that is too long for one answer: one JSON value per line (application/x-ndjson), with back-pressure. */
import type { Services } from '../services.ts';
import { answerPieces } from './pieces.ts';
import type { Reply } from './reply.ts';
import type { Context } from './route.ts';

/** Streams the values of all pages, by `answerPieces`. */
export const ndjson = (
  context: Pick<Context, 'stillMay'> & { services: Services },
  pages: AsyncIterable<readonly unknown[]>,
): Reply => answerPieces(context, 'application/x-ndjson', lines(pages));

async function* lines(pages: AsyncIterable<readonly unknown[]>) {
  for await (const page of pages)
    yield page.length > 0 ? `${page.map((value) => JSON.stringify(value)).join('\n')}\n` : '';
}
