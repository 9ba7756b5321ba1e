/** Builds the sentence that says what a held call does, from the platform's current manifest. */
import { z } from 'zod';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Ask } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import type { Sentence } from '../sentences/part.ts';
import { sentenceOf } from '../sentences/sentences.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import type { ToolOnFile } from './mcp/tool-on-file.ts';

const Titled = z.object({ title: z.string() });

/** `onFile`: the called tool of an MCP server; the sentence uses its accepted title. */
export function sentenceOfCall({ platform }: LoadedFacts, ask: Ask, onFile: ToolOnFile | undefined): Sentence {
  const { rules, sentences } = present(platform, 'platform');
  const accepted = onFile?.row?.accepted;
  const titled =
    accepted == null ? undefined : Titled.safeParse(readStored(StoredObject, accepted, 'definition of a tool'));
  const call = present(ask.call, 'call');
  return sentenceOf({ rules, sentences: sentences() }, call, titled?.success ? { toolTitle: titled.data.title } : {});
}
