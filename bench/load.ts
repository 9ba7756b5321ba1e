/**
 * The load generator, a process of its own (generator.ts starts it): N kept-alive connections, each sending its next
 * request when the last one is answered. It shares the cores with what it measures, so all that can be done before is:
 * requests arrive as finished bytes, answers are read only as far as their end.
 */

import { connect } from 'node:net';
import { present } from '../broker/runtime/present.ts';
import type { LoadOrder, LoadReport } from './generator.ts';
import { createHistogram } from './histogram.ts';
import { createResponseReader } from './response.ts';

/** A run ends in words, not never, when answers stop. */
const STALLED_AFTER_MS = 10_000;
/** Connections that fail are opened again this often in a run, all together. */
const MOST_RECONNECTS = 100;

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
        // A server may end a connection between two answers; in the middle of one it is an error of the run.
        if (trouble || sentAt !== 0) count(errors, trouble ?? 'closed before the answer');
        if (!finished && !errors.stalled && reconnects++ < MOST_RECONNECTS) openOne();
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
      // A run that was bounded by its count ended with its last answer.
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
