/** The schema of a sentence on the wire. */
import { z } from 'zod';
import { plainSentence, type Sentence } from '../sentences/part.ts';

export const SentenceShown = z
  .object({
    text: z.string().describe('the whole of it, as one line of plain text'),
    parts: z
      .array(
        z.union([
          z.object({ text: z.string().describe('words of the template') }),
          z.object({
            value: z.string().describe('from the request: cut, with what cannot be seen shown by its number'),
            strong: z.literal(true).optional().describe('what the call acts on'),
            quoted: z.literal(true).optional().describe('free text, to be shown between quotation marks'),
            note: z.string().optional().describe('what is not as it seems, or was cut'),
            amount: z
              .literal(true)
              .optional()
              .describe('an amount of money whose currency and unit were read, such as 1,234.50 EUR'),
          }),
        ]),
      )
      .describe('the same in parts, to be laid out as text, never as markup'),
    template: z
      .string()
      .nullable()
      .describe(
        'a hash of the template in the manifest; null: made from method and path, or the names of fields or tools',
      ),
  })
  .meta({ id: 'Sentence' });

export const shownSentence = (sentence: Sentence): z.infer<typeof SentenceShown> => ({
  text: plainSentence(sentence),
  parts: [...sentence.parts],
  template: sentence.template,
});
