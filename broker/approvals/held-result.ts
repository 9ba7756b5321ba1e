/** The result of a replay as it is stored, once it was opened; `sealResult` writes it. */
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';

const StoredResult = z.object({
  status: z.number(),
  data: z.unknown(),
  encoding: z.string().exactOptional(),
  headers: z.record(z.string(), z.string()).exactOptional(),
  content_type: z.string().exactOptional(),
  /** Only the beginning of the data was kept. */
  truncated: z.boolean().exactOptional(),
  /** How a raw call's was passed on; absent: it is no raw call's, or a release before kept it. */
  raw: z
    .object({
      headers: z.record(z.string(), z.union([z.string(), z.array(z.string())])),
      isText: z.boolean().exactOptional(),
      bytes: z.string().exactOptional(),
      masked_by: z.array(z.string()).exactOptional(),
    })
    .exactOptional(),
});
export type StoredResult = z.infer<typeof StoredResult>;

/** @param text as it was opened. Throws Error when it is no result */
export const readStoredResult = (text: string): StoredResult => readStored(StoredResult, text, 'result of a held call');
