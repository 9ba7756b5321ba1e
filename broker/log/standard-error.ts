/** Standard error as the destination of a log: lines are written in order, and a reader that stopped reading never blocks the process. */
import { writeSync } from 'node:fs';

/** Most bytes of lines that wait for the reader; further lines are dropped and counted. */
const MAX_BYTES = 1024 * 1024;
const RETRY_MS = 20;
/** How long the exit of the process waits for the reader. */
const EXIT_MS = 500;

/**
 * Writes each line immediately, as long as the reader keeps up. Otherwise lines wait in a queue, also those that a full disk refuses. `tellDropped` is
 * called with the number of lines that did not fit into the queue, once the queue is written; the line that it logs is then at their place.
 */
export function standardError(tellDropped: (lines: number) => void): { write(line: string): void } {
  // Opening the stream sets a pipe or a socket to non-blocking (Linux): a write to a full one then fails with EAGAIN instead of blocking this thread.
  const fd = process.stderr.fd ?? 2;
  let queue: Buffer[] = [];
  let queuedBytes = 0;
  let dropped = 0;
  /** Whether the last write failed for another reason than a slow reader, such as a closed pipe. */
  let hasFailed = false;
  let timer: NodeJS.Timeout | undefined;
  let willFlush = false;

  /** Returns the number of bytes that were written, which is 0 when none can be written now. */
  const tryWrite = (bytes: string | Buffer): number => {
    try {
      const written = typeof bytes === 'string' ? writeSync(fd, bytes) : writeSync(fd, bytes);
      hasFailed = false;
      return written;
    } catch (error) {
      hasFailed = (error as NodeJS.ErrnoException).code !== 'EAGAIN';
      return 0;
    }
  };

  const enqueue = (bytes: Buffer): void => {
    queue.push(bytes);
    queuedBytes += bytes.length;
    timer ??= setInterval(writeQueue, RETRY_MS).unref();
    if (willFlush) return;
    willFlush = true;
    process.once('exit', flush);
  };

  const writeQueue = (): void => {
    const all = Buffer.concat(queue);
    const rest = all.subarray(tryWrite(all));
    queue = rest.length > 0 ? [rest] : [];
    queuedBytes = rest.length;
    if (queuedBytes > 0) return;
    clearInterval(timer);
    timer = undefined;
    const lines = dropped;
    dropped = 0;
    if (lines > 0) tellDropped(lines);
  };

  /** At the exit, also that after an uncaught error. */
  const flush = (): void => {
    const end = performance.now() + EXIT_MS;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (writeQueue(); queuedBytes > 0 && !hasFailed && performance.now() < end; writeQueue())
      Atomics.wait(pause, 0, 0, RETRY_MS);
  };

  return {
    write: (line) => {
      // Until the queue is written every line is dropped, so that the place of the count is that of all the dropped lines.
      if (dropped > 0 || (queuedBytes > 0 && queuedBytes + line.length > MAX_BYTES)) dropped++;
      else if (queuedBytes > 0) enqueue(Buffer.from(line));
      else {
        const written = tryWrite(line);
        if (written < Buffer.byteLength(line)) enqueue(Buffer.from(line).subarray(written));
      }
    },
  };
}
