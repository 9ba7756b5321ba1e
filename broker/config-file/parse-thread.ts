/** The thread that reads a large governance file, and keeps it until it is ended: only it knows the lines. */

import { parentPort } from 'node:worker_threads';
import { present } from '../policy/present.ts';
import type { Governance } from './governance.ts';
import { parseGovernance } from './parse.ts';
import { type Finding, type Problem, placeFindings, type Source } from './problems.ts';

export type ToParseThread = { text: string; file: string } | { findings: readonly Finding[] };
export type FromParseThread =
  | { problems: Problem[] }
  | (Pick<Governance, 'document' | 'manifests' | 'warnings'> & {
      /** As in Governance; without the key where it is the text itself, which is half of what is handed over. */
      keys: ReadonlyMap<string, { pem?: string; fingerprint: string }>;
    });

const port = present(parentPort, 'parent of this thread');
let source: Source | undefined;

function answer(message: ToParseThread): FromParseThread {
  if ('findings' in message) return { problems: placeFindings(present(source, 'source'), message.findings) };
  const parsed = parseGovernance(message.text, message.file);
  if (!parsed.ok) return { problems: parsed.problems };
  const { document, manifests, warnings, keys } = parsed.governance;
  source = parsed.governance.source;
  const short = [...keys].map(
    ([text, { pem, fingerprint }]) => [text, pem === text ? { fingerprint } : { pem, fingerprint }] as const,
  );
  return { document, manifests, warnings, keys: new Map(short) };
}

port.on('message', (message: ToParseThread) => port.postMessage(answer(message)));
