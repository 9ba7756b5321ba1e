/**
 * The load generator, in a process of its own (started by generator.ts): N kept-alive connections, each sending its next
 * request when the last one is answered. It shares the cores with the measured processes, so it does as little as possible:
 * requests are prepared bytes, and answers are parsed only to find their end.
 */

import { connect } from 'node:net';
import { present } from '../broker/runtime/present.ts';
import type { LoadOrder, LoadReport } from './generator.ts';
import { createHistogram } from './histogram.ts';
import { createResponseReader } from './response.ts';

/** A run fails with an error after this time without an answer. */
const STALLED_AFTER_MS = 10_000;
/** The maximum number of reconnects in a run, over all connections. */
const MAX_RECONNECTS = 100;

process.on('message', (order: LoadOrder) => {
  run(order).then(
    (report) => process.send?.({ report }),
    (error: Error) => process.send?.({ failed: error.message }),
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });

function run(order: LoadOrder): Promise<LoadReport> {
  const { port, host, connections, requests, warmupMs, measureMs, mostCalls } = order;
  const histogram = createHistogram();
  const statuses: Record<string, number> = {};
  const errors: Record<string, number> = {};
  const startedAt = performance.now();
  const measuredFrom = startedAt + warmupMs;
  const measuredTo = measuredFrom + measureMs;
  let sent = 0;
  let answered = 0;
  let measured = 0;
  let lastAnswerAt = startedAt;
  let reconnects = 0;

  return new Promise((resolve) => {
    let open = 0;
    const sockets = new Set<ReturnType<typeof connect>>();
    const watchdog = setInterval(() => {
      if (performance.now() - lastAnswerAt < STALLED_AFTER_MS) return;
      count(errors, 'stalled');
      for (const socket of sockets) socket.destroy();
    }, 1_000);

    for (let at = 0; at < Math.min(connections, mostCalls); at++) openOne();

    function openOne(): void {
      open++;
      const reader = createResponseReader();
      let sentAt = 0;
      let trouble: string | undefined;
      const onBytes = (size: number, buffer: Uint8Array): boolean => {
        try {
          const status = reader.push(Buffer.from(buffer.buffer, buffer.byteOffset, size));
          if (status !== 0) answer(status);
        } catch (error) {
          trouble = (error as Error).message;
          socket.destroy();
        }
        return true;
      };
      const onread = { buffer: Buffer.allocUnsafeSlow(65_536), callback: onBytes };
      const socket = connect({ port, host, noDelay: true, onread });
      sockets.add(socket);
      socket.once('connect', next);
      socket.on('error', (error: NodeJS.ErrnoException) => {
        trouble = error.code ?? error.message;
      });
      socket.once('close', () => {
        open--;
        sockets.delete(socket);
        const finished = performance.now() >= measuredTo || sent >= mostCalls;
        // A server may close a connection between two answers; closing during a request is an error of the run.
        if (trouble || sentAt !== 0) count(errors, trouble ?? 'closed before the answer');
        if (!finished && !errors.stalled && reconnects++ < MAX_RECONNECTS) openOne();
        else if (open === 0) finish();
      });

      function next(): void {
        if (sent >= mostCalls || performance.now() >= measuredTo) {
          sentAt = 0;
          socket.end();
          return;
        }
        sentAt = performance.now();
        socket.write(present(requests[sent++ % requests.length], 'request'));
      }

      function answer(status: number): void {
        const now = performance.now();
        lastAnswerAt = now;
        answered++;
        count(statuses, String(status));
        if (now >= measuredFrom && now <= measuredTo) {
          measured++;
          histogram.record(now - sentAt);
        }
        next();
      }
    }

    function finish(): void {
      clearInterval(watchdog);
      // A run that is limited by its number of calls ends with its last answer.
      const end = Math.min(measuredTo, lastAnswerAt);
      const seconds = Math.max(0, end - measuredFrom) / 1_000;
      const rate = seconds > 0 ? measured / seconds : 0;
      resolve({ sent, answered, measured, seconds, rate, latency: histogram.read(), statuses, errors });
    }
  });
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
