/** The stored result of a replay after it was opened; `sealResult` writes it. */
import { z } from 'zod';
import { readStored } from '../store/stored-json.ts';

const StoredResult = z.object({
  status: z.number(),
  data: z.unknown(),
  encoding: z.string().exactOptional(),
  headers: z.record(z.string(), z.string()).exactOptional(),
  content_type: z.string().exactOptional(),
  /** The host that a redirect was followed to. */
  followed: z.string().exactOptional(),
  /** True when only the beginning of the data was kept. */
  truncated: z.boolean().exactOptional(),
  /** How the response to a raw call was passed on; absent when the call was not raw, or when an earlier release stored the result. */
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

/** @param text the opened value. Throws Error when it is not a result */
export const readStoredResult = (text: string): StoredResult => readStored(StoredResult, text, 'result of a held call');
