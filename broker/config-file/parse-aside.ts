/** Reading a governance file without keeping the thread that answers: a large one is read in a thread of its own. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Governance } from './governance.ts';
import { type Parsed, parseGovernance } from './parse.ts';
import type { FromParseThread, ToParseThread } from './parse-thread.ts';

const THREAD = new URL(`./parse-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Read here in less time than another thread takes to start, and than anybody notices (some 10 ms). */
const SMALL = 16 * 1024;

/**
 * The same as `parseGovernance`, for `work`, which plans or applies what was read: a large file is kept by its thread until
 * `work` is done, so that problems get their lines.
 *
 * @throws whatever `work` throws, and what ends the thread: no memory
 */
export async function withGovernance<Result>(
  text: string,
  file: string,
  work: (parsed: Parsed) => Promise<Result>,
): Promise<Result> {
  if (text.length <= SMALL) return await work(parseGovernance(text, file));
  const worker = new Worker(THREAD);
  const ask = async (message: ToParseThread): Promise<FromParseThread> => {
    worker.postMessage(message);
    const [answer] = await once(worker, 'message');
    // To take it over takes a turn of its own, of some 15 ms for 5,000 agents with keys.
    await setImmediate();
    return answer as FromParseThread;
  };
  try {
    const read = await ask({ text, file });
    if ('problems' in read) return await work({ ok: false, problems: read.problems });
    const governance: Governance = {
      ...read,
      keys: new Map([...read.keys].map(([text, { pem = text, fingerprint }]) => [text, { pem, fingerprint }])),
      source: { file, locate: () => undefined },
      origin: 'file',
      place: async (findings) => {
        if (findings.length === 0) return [];
        const placed = await ask({ findings });
        return 'problems' in placed ? placed.problems : [];
      },
    };
    return await work({ ok: true, governance, warnings: read.warnings });
  } finally {
    await worker.terminate();
  }
}
