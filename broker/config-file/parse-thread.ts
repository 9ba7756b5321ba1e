/** The worker thread that parses a large governance file, and keeps it to find the lines of later problems. */

import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { present } from '../runtime/present.ts';
import { entriesOf, type Governance } from './governance.ts';
import { parseGovernance } from './parse.ts';
import { type Finding, type Problem, placeFindings, type Source } from './problems.ts';
import type { AgentEntry } from './schema.ts';

/** `part`: requests one part of the result: receiving thousands of agents in one message blocks the main thread for some 30 ms. */
export type ToParseThread = { text: string; file: string } | { part: number } | { findings: readonly Finding[] };
export type FromParseThread = Problems | Head | Part;

export type Problems = { problems: Problem[] };

/** The parsed file without its agents and keys. */
export type Head = Pick<Governance, 'document' | 'manifests' | 'warnings'> & { parts: number };

export type Part = {
  agents: [string, AgentEntry][];
  /** As in Governance; without `pem` where it equals the text, which saves half of the data. */
  keys: [string, { pem?: string; fingerprint: string }][];
};

/** Agents, and keys, in one part. */
const PER_PART = 250;

// Lower priority than the main thread, for machines with few processors. On Linux the priority belongs to the thread, elsewhere to the process.
try {
  if (process.platform === 'linux') setPriority(10);
} catch {
  // A sandbox may forbid setting the priority.
}

const port = present(parentPort, 'parent of this thread');
let source: Source | undefined;
let whole: Part = { agents: [], keys: [] };

function answer(message: ToParseThread): FromParseThread {
  if ('part' in message) {
    const from = message.part * PER_PART;
    const of = <Item>(items: Item[]) => items.slice(from, from + PER_PART);
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
  const parts = Math.ceil(Math.max(whole.agents.length, whole.keys.length) / PER_PART);
  return { document: { ...document, ...(document.agents && { agents: {} }) }, manifests, warnings, parts };
}

port.on('message', (message: ToParseThread) => port.postMessage(answer(message)));
