/** What a call does, in a sentence, as the platform's manifest is now: for a call that is held. */
import { z } from 'zod';
import type { LoadedFacts } from '../facts/facts.ts';
import type { Ask } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import type { Sentence } from '../sentences/part.ts';
import { sentenceOf } from '../sentences/sentences.ts';
import { readStored, StoredObject } from '../store/stored-json.ts';
import type { ToolOnFile } from './tool-on-file.ts';

const Titled = z.object({ title: z.string() });

/** `onFile`: the tool of an MCP server that is called; its title is the one that was accepted. */
export function sentenceOfCall({ platform }: LoadedFacts, ask: Ask, onFile: ToolOnFile | undefined): Sentence {
  const { rules, sentences } = present(platform, 'platform');
  const accepted = onFile?.row?.accepted;
  const titled =
    accepted == null ? undefined : Titled.safeParse(readStored(StoredObject, accepted, 'definition of a tool'));
  const call = present(ask.call, 'call');
  return sentenceOf({ rules, sentences: sentences() }, call, titled?.success ? { toolTitle: titled.data.title } : {});
}
