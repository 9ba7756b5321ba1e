/** A sentence that describes a held call: built once from the request, sealed beside it, and always shown from there. */
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import { SENTENCE_FORMAT, type Sentence } from '../sentences/part.ts';
import { sentenceOfPath } from '../sentences/sentences.ts';
import { readStored } from '../store/stored-json.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { openSentence } from './sealed.ts';

const StoredSentence = z.strictObject({
  format: z.literal(SENTENCE_FORMAT),
  template: z.string().nullable(),
  parts: z.array(
    z.union([
      z.strictObject({ text: z.string() }),
      z.strictObject({
        value: z.string(),
        strong: z.literal(true).exactOptional(),
        quoted: z.literal(true).exactOptional(),
        note: z.string().exactOptional(),
        amount: z.literal(true).exactOptional(),
      }),
    ]),
  ),
});

/** Encodes the sentence for sealing. */
export const writtenSentence = ({ template, parts }: Sentence): string =>
  JSON.stringify({ format: SENTENCE_FORMAT, template, parts });

type Held = Pick<ApprovalTable, 'organisation_id' | 'id' | 'sentence' | 'method' | 'path'>;

/**
 * Returns the sentence as stored; later changes of the manifest do not affect it. A call that was held before sentences were stored, or whose
 * sentence was altered in the store (which is logged), gets one built from its method and path.
 */
export function sentenceOfHeld(broker: Pick<Broker, 'vault' | 'log'>, held: Held): Sentence {
  if (held.sentence !== null) {
    try {
      const { template, parts } = readStored(
        StoredSentence,
        openSentence(broker, held, held.sentence),
        'sentence of a held call',
      );
      return { template, parts };
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      broker.log.error(
        { err: error, security: true, approval: held.id },
        'the sentence of a held call cannot be opened',
      );
    }
  }
  return sentenceOfPath(undefined, held);
}
