/** A worker thread that measures what parsed JSON takes: a thread has a small heap of its own, so that collecting garbage takes milliseconds. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort } from 'node:worker_threads';
import { parseStrictJson } from '../../json/strict.ts';

export type ParsedMemory = { estimated: number; taken: number };

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const heap = () => {
  gc();
  return process.memoryUsage().heapUsed;
};

parentPort?.on('message', (text: string) => {
  const before = heap();
  const parsed = parseStrictJson(text);
  const taken = heap() - before;
  if (!parsed.ok || typeof parsed.value !== 'object') throw new Error('The text is not a JSON object or list.');
  parentPort?.postMessage({ estimated: parsed.bytes, taken } satisfies ParsedMemory);
});
