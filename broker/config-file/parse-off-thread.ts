/** Parses a large governance file in a worker thread, so that the main thread stays responsive. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { pacer } from '../runtime/pace.ts';
import type { Governance } from './governance.ts';
import { type Parsed, parseGovernance } from './parse.ts';
import type { FromParseThread, Head, Part, Problems, ToParseThread } from './parse-thread.ts';

const THREAD = new URL(`./parse-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Files up to this size are parsed in the main thread, in less time than a thread takes to start (some 10 ms). */
const SMALL = 16 * 1024;

/**
 * Parses as `parseGovernance` does, and calls `work`, which plans or applies the result. The worker of a large file stays until `work`
 * is done, so that problems get their lines.
 *
 * @throws whatever `work` throws, and what ends the worker: out of memory
 */
export async function withGovernance<Result>(
  text: string,
  file: string,
  work: (parsed: Parsed) => Promise<Result>,
): Promise<Result> {
  if (text.length <= SMALL) return await work(parseGovernance(text, file));
  const worker = new Worker(THREAD);
  const ask = async <Answer extends FromParseThread>(message: ToParseThread): Promise<Answer> => {
    worker.postMessage(message);
    const [answer] = await once(worker, 'message');
    return answer as Answer;
  };
  try {
    const read = await ask<Problems | Head>({ text, file });
    if ('problems' in read) return await work({ ok: false, problems: read.problems });
    const { document, manifests, warnings, parts } = read;
    const agents: Part['agents'] = [];
    const keys = new Map<string, { pem: string; fingerprint: string }>();
    for (let part = 0; part < parts; part++) {
      const more = await ask<Part>({ part });
      agents.push(...more.agents);
      for (const [text, { pem = text, fingerprint }] of more.keys) keys.set(text, { pem, fingerprint });
    }
    const rest = pacer();
    await rest();
    const byName = document.agents && Object.fromEntries(agents);
    const governance: Governance = {
      document: { ...document, ...(byName && { agents: byName }) },
      manifests,
      warnings,
      keys,
      source: { file, locate: () => undefined },
      origin: 'file',
      place: async (findings) => (findings.length === 0 ? [] : (await ask<Problems>({ findings })).problems),
    };
    await rest();
    return await work({ ok: true, governance, warnings });
  } finally {
    await worker.terminate();
  }
}
