/** The thread that reads a large governance file, and keeps it until it is ended: only it knows the lines. */

import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { present } from '../runtime/present.ts';
import { entriesOf, type Governance } from './governance.ts';
import { parseGovernance } from './parse.ts';
import { type Finding, type Problem, placeFindings, type Source } from './problems.ts';
import type { AgentEntry } from './schema.ts';

/** `part`: to take over thousands of agents at once takes the asking thread some 30 ms. */
export type ToParseThread = { text: string; file: string } | { part: number } | { findings: readonly Finding[] };
export type FromParseThread = Problems | Head | Part;

export type Problems = { problems: Problem[] };

/** What was read, without its agents and keys. */
export type Head = Pick<Governance, 'document' | 'manifests' | 'warnings'> & { parts: number };

export type Part = {
  agents: [string, AgentEntry][];
  /** As in Governance; without the key where it is the text itself, which is half of what is handed over. */
  keys: [string, { pem?: string; fingerprint: string }][];
};

/** Agents, and keys, in one part. */
const IN_A_PART = 250;

// Where there are few processors, after the thread that answers. On Linux the priority is one of the thread, elsewhere of the process.
try {
  if (process.platform === 'linux') setPriority(10);
} catch {
  // A sandbox may forbid it.
}

const port = present(parentPort, 'parent of this thread');
let source: Source | undefined;
let whole: Part = { agents: [], keys: [] };

function answer(message: ToParseThread): FromParseThread {
  if ('part' in message) {
    const from = message.part * IN_A_PART;
    const of = <Item>(items: Item[]) => items.slice(from, from + IN_A_PART);
    return { agents: of(whole.agents), keys: of(whole.keys) };
  }
  if ('findings' in message) return { problems: placeFindings(present(source, 'source'), message.findings) };
  const parsed = parseGovernance(message.text, message.file);
  if (!parsed.ok) return { problems: parsed.problems };
  const { document, manifests, warnings, keys } = parsed.governance;
  source = parsed.governance.source;
  whole = {
    agents: entriesOf(document.agents),
    keys: [...keys].map(([text, { pem, fingerprint }]) => [
      text,
      pem === text ? { fingerprint } : { pem, fingerprint },
    ]),
  };
  const parts = Math.ceil(Math.max(whole.agents.length, whole.keys.length) / IN_A_PART);
  return { document: { ...document, ...(document.agents && { agents: {} }) }, manifests, warnings, parts };
}

port.on('message', (message: ToParseThread) => port.postMessage(answer(message)));
